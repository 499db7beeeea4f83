//! What is told of bodies that leave something behind.

use super::*;
use HazardKind::*;

#[track_caller]
fn hazards(definition: &Definition) -> Vec<(HazardKind, u32)> {
    let analysis = analysed(definition);
    analysis.hazards.iter().map(|hazard| (hazard.kind, hazard.line)).collect()
}

#[test]
fn each_hazard_is_told_with_its_line() {
    let cases: &[(&str, &[HazardKind])] = &[
        ("PERFORM pg_advisory_lock(1);", &[SessionLock]),
        ("PERFORM pg_catalog.pg_try_advisory_lock_shared(1);", &[SessionLock]),
        ("PERFORM pg_advisory_unlock_all();", &[SessionLock]),
        ("PERFORM pg_advisory_xact_lock(1);", &[]),
        ("IF pg_try_advisory_lock(p) THEN NULL; END IF;", &[SessionLock]),
        ("LISTEN x;", &[Listen]),
        ("UNLISTEN *;", &[Listen]),
        ("NOTIFY x, 'y';", &[]),
        ("PERFORM pg_notify('x', 'y');", &[]),
        ("CREATE TEMP TABLE x (a int);", &[TemporaryObject]),
        ("CREATE LOCAL TEMPORARY TABLE x AS SELECT 1;", &[TemporaryObject]),
        ("CREATE OR REPLACE TEMP VIEW x AS SELECT 1;", &[TemporaryObject]),
        ("CREATE TABLE pg_temp.x (a int);", &[TemporaryObject]),
        ("CREATE TEMP TABLE x (a int) ON COMMIT DROP;", &[]),
        ("CREATE TEMP TABLE x ON COMMIT DROP AS SELECT 1;", &[]),
        ("CREATE TEMP TABLE x (a int) ON COMMIT DELETE ROWS;", &[TemporaryObject]),
        ("CREATE TABLE x (a int);", &[]),
        ("DISCARD TEMP;", &[TemporaryObject]),
        ("SET work_mem = '1MB';", &[SessionSetting]),
        ("SET SESSION work_mem = '1MB';", &[SessionSetting]),
        ("SET LOCAL work_mem = '1MB';", &[]),
        ("SET CONSTRAINTS ALL DEFERRED;", &[]),
        ("SET TRANSACTION READ ONLY;", &[]),
        ("RESET work_mem;", &[SessionSetting]),
        ("PERFORM set_config('a.b', 'c', false);", &[SessionSetting]),
        ("PERFORM set_config('a.b', 'c', true);", &[]),
        ("PERFORM set_config('a.b', 'c', p > 1);", &[SessionSetting]),
        ("COMMIT;", &[Commit]),
        ("ROLLBACK AND CHAIN;", &[Commit]),
        ("EXECUTE 'select 1' || p USING p;", &[Dynamic]),
        ("FOR p IN EXECUTE 'x' LOOP NULL; END LOOP;", &[Dynamic]),
        ("PERFORM pg_sleep(1);", &[Sleep]),
        ("LOCK TABLE t;", &[LockTable]),
        ("PERFORM dblink_exec('x', 'y');", &[Outside]),
        ("p := length(pg_read_file('x'));", &[Outside]),
        ("PERFORM nextval('s');", &[]),
        ("DO 'begin end';", &[Unknown]),
        ("PREPARE x AS SELECT 1;", &[SessionSetting]),
        ("EXECUTE 'x' || pg_advisory_lock(1);", &[Dynamic, SessionLock]),
        ("RAISE NOTICE '%', pg_advisory_lock(1);", &[SessionLock]),
    ];
    for (statement, expected) in cases {
        let definition = procedure("p int", &format!("\nBEGIN\n{statement}\nEND"));
        let expected: Vec<(HazardKind, u32)> = expected.iter().map(|kind| (*kind, 3)).collect();
        assert_eq!(hazards(&definition), expected, "{statement}");
    }
    let block = procedure("p int", "\nBEGIN\nPERFORM 1;\nLISTEN x;\nEND");
    assert_eq!(hazards(&block), [(Listen, 4)]);
}

#[test]
fn sql_bodies_have_hazards_of_their_own() {
    let cases: &[(&str, &[HazardKind])] = &[
        ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", &[HoldCursor]),
        ("DECLARE c CURSOR FOR SELECT 1", &[]),
        ("SELECT 1 INTO TEMP x", &[TemporaryObject]),
        ("SELECT pg_advisory_lock($1)", &[SessionLock]),
    ];
    for (source, expected) in cases {
        let expected: Vec<(HazardKind, u32)> = expected.iter().map(|kind| (*kind, 1)).collect();
        assert_eq!(hazards(&sql("p int", source)), expected, "{source}");
    }
}

#[test]
fn a_cursor_that_is_handed_out_is_a_hazard() {
    let body = "BEGIN OPEN c FOR SELECT 1; END";
    assert_eq!(hazards(&function("f", "OUT c refcursor", "", body)), [(Cursor, 0)]);
    let body = "DECLARE c refcursor; BEGIN OPEN c FOR SELECT 1; RETURN c; END";
    assert_eq!(hazards(&function("f", "", "refcursor", body)), [(Cursor, 0)]);
    let body = "DECLARE c refcursor; BEGIN OPEN c FOR SELECT 1; CLOSE c; END";
    assert_eq!(hazards(&function("f", "", "void", body)), []);
}

#[test]
fn handlers_are_told_and_what_they_catch() {
    let cases = [
        ("unique_violation", false),
        ("others", true),
        ("OTHERS", true),
        ("lock_not_available", true),
        ("division_by_zero OR lock_not_available", true),
        ("SQLSTATE '55P03'", true),
        ("SQLSTATE '55000'", true),
        ("object_not_in_prerequisite_state", true),
        ("SQLSTATE '40001'", false),
    ];
    for (condition, catches) in cases {
        let source = format!("\nBEGIN\nNULL;\nEXCEPTION WHEN {condition} THEN NULL;\nEND");
        let analysis = analysed(&procedure("p int", &source));
        assert_eq!(analysis.handles_errors, Some(2), "{condition}");
        assert_eq!(analysis.catches_lock_timeout, catches, "{condition}");
    }
    let inner = "BEGIN\nBEGIN NULL; EXCEPTION WHEN others THEN NULL; END;\nEND";
    assert_eq!(analysed(&procedure("p int", inner)).handles_errors, Some(2));
    assert_eq!(analysed(&procedure("p int", "NULL;")).handles_errors, None);
}

#[test]
fn words_say_where_and_what() {
    let analysis = analysed(&procedure("p int", "\nBEGIN\nPERFORM pg_advisory_lock(1);\nEND"));
    let words: Vec<String> = analysis.hazards.iter().map(Hazard::to_string).collect();
    assert_eq!(words, ["line 3: pg_advisory_lock() takes or frees a lock of the session"]);
}

#[test]
fn bodies_that_are_none_are_refused_in_words() {
    let refused = |definition: &Definition| parsed(definition).expect_err("a body that is none");
    assert!(refused(&procedure("p int", "BEGIN")).contains("syntax error"));
    let python = Definition { language: "plpython3u".to_owned(), ..procedure("", "NULL;") };
    assert_eq!(refused(&python), "bodies in language plpython3u are not understood");
    let long = procedure("", &" ".repeat(SOURCE_MAX));
    assert!(refused(&long).contains("more than"));
    assert!(read(&procedure("", "NULL;"), b"{}").is_err());
    assert!(read(&procedure("", "NULL;"), b"{\"PlPgSql\":{\"function\":1}}").is_err());
}
