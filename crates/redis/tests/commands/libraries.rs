//! Libraries of functions are stored like keys: loaded, committed and undone with what else a unit
//! does.

use crate::rig::{words, Rig};
use redis::args::Words;
use redis::engine::Ran;
use redis::keyspace::LIBRARIES;
use redis::reply::Recorded;

fn load(name: &str, body: &str) -> Words {
    let code = format!(
        "#!lua name={name}\nredis.register_function('{name}', function(keys, args) {body} end)\n\
         redis.register_function{{function_name='{name}_ro', flags={{'no-writes'}},\n\
         callback=function() return '{name}' end}}"
    );
    ["FUNCTION", "LOAD", "REPLACE", &code].into_iter().collect()
}

#[track_caller]
fn loads(rig: &mut Rig, name: &str, body: &str) {
    assert_eq!(rig.run_words(rig.conn, &load(name, body)), format!("{name:?}"));
}

/// The stored libraries' row.
fn row() -> (u16, Box<[u8]>) {
    (LIBRARIES, b"libraries"[..].into())
}

#[test]
fn every_change_of_libraries_is_stored() {
    let mut rig = Rig::new();
    for name in ["a", "b", "c"] {
        loads(&mut rig, name, "return 1");
    }
    let stored = |rig: &Rig| {
        let state = rig.tables.lock();
        let names = state.tables.hash.keys().map(|(_, name)| String::from_utf8_lossy(name));
        let kid = state.tables.kv.get(&row()).map(|row| row.kid);
        assert!(state.tables.hash.keys().all(|(of, _)| Some(*of) == kid), "one incarnation");
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(stored(&rig), "a b c");
    rig.check("FUNCTION DELETE b", "OK");
    assert_eq!(stored(&rig), "a c");
    rig.reads("FCALL_RO c_ro 0", "\"c\"");
    rig.reads("FCALL b 0", "!ERR Function not found");
    rig.reads("FUNCTION DELETE b", "!ERR Library not found");
    loads(&mut rig, "c", "return 2");
    rig.reads("FCALL c 0", "2");
    rig.check("FLUSHALL", "OK");
    rig.reads("FCALL a 0", "1");
    rig.check("DBSIZE", "0");
    rig.check("FUNCTION FLUSH", "OK");
    assert!(rig.tables.lock().tables.kv.is_empty(), "a hash without fields is no row");
    rig.reads("FUNCTION LIST", "[]");
}

#[test]
fn a_library_is_committed_with_the_rest_of_its_transaction_and_undone_with_it() {
    let mut rig = Rig::new();
    rig.check("SET far away", "OK");
    rig.forget();
    for line in ["MULTI", "INCR n"] {
        rig.run(line);
    }
    rig.run_words(rig.conn, &load("l", "return redis.call('get', 'far')"));
    for line in ["FCALL l 0", "INCR n"] {
        rig.run(line);
    }
    // What is not in memory is found out behind the first change, and twice.
    rig.check("EXEC", "[1 \"l\" \"away\" 2]");
    rig.reads("GET n", "\"2\"");
    let batches = rig.tables.lock().batches;
    assert_eq!(batches, 2, "the transaction was one batch");
}

#[test]
fn what_a_function_says_waits_for_its_library() {
    let mut rig = Rig::new();
    rig.check("FUNCTION LIST", "[]");
    rig.tables.lock().slow = true;
    let (writer, reader) = (rig.conn, rig.client());
    let run = |rig: &mut Rig, conn, words: &Words| {
        let mut reply = Recorded::new(2);
        match rig.engine.run(conn, words.args(), rig.now, &mut reply) {
            Ran::Done { barrier, before, .. } => (format!("{reply:?}"), barrier, before),
            other => panic!("{other:?}"),
        }
    };
    let (_, loaded, before) = run(&mut rig, writer, &load("l", "return 1"));
    rig.turn();
    let (said, seen, _) = run(&mut rig, reader, &words("FCALL_RO l_ro 0"));
    assert_eq!((&*said, seen), ("\"l\"", loaded));
    // The batch is undone: nobody has been told of the library, and it is gone.
    rig.tables.conflict();
    rig.turn();
    assert_eq!(rig.redo, [writer, reader]);
    rig.tables.lock().slow = false;
    assert_eq!(rig.run_as(reader, "FCALL_RO l_ro 0"), "!ERR Function not found");
    rig.engine.restore(writer, before.expect("it has written"));
    loads(&mut rig, "l", "return 1");
    assert_eq!(rig.run_as(reader, "FCALL_RO l_ro 0"), "\"l\"");
}

#[test]
fn libraries_are_not_changed_while_writes_are_paused() {
    let mut rig = Rig::new();
    rig.check("CLIENT PAUSE 1000 WRITE", "OK");
    let words = load("l", "return 1");
    let ran = rig.engine.run(rig.conn, words.args(), rig.now, &mut Recorded::new(2));
    assert!(matches!(ran, Ran::Parked), "{ran:?}");
    rig.pass(1_001);
    loads(&mut rig, "l", "return 1");
}

#[test]
fn a_batch_does_not_look_at_the_libraries_that_its_functions_are_of() {
    let mut rig = Rig::new();
    loads(&mut rig, "l", "return redis.call('incr', 'n')");
    rig.check("FCALL l 0", "1");
    // Changed by SQL, and not heard of yet.
    rig.tables.lock().tables.kv.get_mut(&row()).expect("it is stored").version = -7;
    rig.check("FCALL l 0", "2");
    assert!(rig.redo.is_empty());
}

#[test]
fn what_sql_stores_is_followed() {
    let mut rig = Rig::new();
    loads(&mut rig, "counter", "return 1");
    let code = b"#!lua name=l\nlocal n = 0\nredis.register_function('f', function() n = n + 1 \
                 return n end)";
    let store = |rig: &mut Rig, name: &str, code: &[u8]| {
        {
            let mut state = rig.tables.lock();
            let row = state.tables.kv.get_mut(&row()).expect("there are some");
            (row.n, row.version) = (row.n + 1, row.version - 100);
            let kid = row.kid;
            state.tables.hash.insert((kid, name.into()), code.to_vec());
        }
        rig.tables.told(redis::store::Told::Changed { db: LIBRARIES, key: row().1 });
        rig.turn();
    };
    store(&mut rig, "l", code);
    rig.check("FCALL f 0", "1");
    rig.check("FCALL counter 0", "1");
    // What can't be loaded is left out, and the others keep what they know.
    store(&mut rig, "broken", b"#!lua name=broken\nnonsense");
    store(&mut rig, "other", b"#!lua name=misnamed\nredis.register_function('g', print)");
    rig.check("FCALL f 0", "2");
    rig.check("FCALL g 0", "!ERR Function not found");
    rig.check("FUNCTION DELETE broken", "OK");
    rig.check("FUNCTION DELETE broken", "!ERR Library not found");
    rig.forget();
    rig.check("FCALL f 0", "3");
}
