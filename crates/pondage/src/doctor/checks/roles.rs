//! Who logs in, what they may do, and what their names mean.

use backend::replication::catalogue::Row;
use backend::replication::missing::{identifier, literal};

use super::super::finding::Finding;
use super::super::patient::Patient;
use super::{listed, Judged, NAMED_MAX};

/// A password that is valid for fewer days is worth a word.
const DAYS_LEFT_MIN: i64 = 14;

pub fn rights(patient: &Patient<'_>, _: Vec<Row>) -> Judged {
    let facts = &patient.facts;
    let (user, database) = (identifier(&facts.user), identifier(&facts.database));
    let mut findings = Vec::new();
    if facts.superuser {
        let finding = Finding::warning(format!("role {user} is a superuser")).effect(
            "a mistake of the application may do anything, row-level security does not hold for it, \
             and connections that are kept for superusers in need are its own",
        );
        findings.push(
            match facts.first_superuser {
                true => finding.fix("CREATE ROLE app LOGIN PASSWORD '...';").fix(format!(
                    "GRANT ALL ON DATABASE {database} TO app; -- and what it owns: REASSIGN OWNED"
                )),
                false => finding.fix(format!("ALTER ROLE {user} NOSUPERUSER;")),
            }
            .verify("SELECT rolsuper FROM pg_roles WHERE rolname = current_user; -- f"),
        );
    }
    if !facts.may_create {
        findings.push(
            Finding::note(format!("role {user} may not create schemas in database {database}"))
                .effect("the Redis door can't make its tables here, nor the cache its publication")
                .fix(format!("GRANT CREATE ON DATABASE {database} TO {user};"))
                .verify("SELECT has_database_privilege(current_database(), 'CREATE'); -- t"),
        );
    }
    (format!("{user} is no superuser and may create schemas"), findings)
}

pub fn verifiers_sql(patient: &Patient<'_>) -> String {
    // Nobody else may read them.
    match patient.facts.superuser {
        true => format!(
            "SELECT current_setting('password_encryption'), \
             (SELECT count(*) FROM pg_authid WHERE rolcanlogin AND rolpassword LIKE 'md5%'), \
             ARRAY(SELECT rolname FROM pg_authid WHERE rolcanlogin AND rolpassword LIKE 'md5%' \
                   ORDER BY 1 LIMIT {NAMED_MAX})::text[]::text"
        ),
        false => "SELECT current_setting('password_encryption'), 0, ''".to_owned(),
    }
}

pub fn verifiers(patient: &Patient<'_>, mut rows: Vec<Row>) -> Judged {
    let Some(row) = rows.first_mut() else { return Judged::default() };
    let encryption = row.text();
    let old: u64 = row.number().unwrap_or_default();
    let named = row.text();
    let facts = &patient.facts;
    let mut findings = Vec::new();
    if encryption != "scram-sha-256" {
        findings.push(
            Finding::warning(format!("password_encryption is {encryption}"))
                .effect("new passwords are stored as md5: who reads one can log in with it")
                .fix("ALTER SYSTEM SET password_encryption = 'scram-sha-256';")
                .fix("SELECT pg_reload_conf();")
                .verify("SHOW password_encryption; -- scram-sha-256"),
        );
    }
    if old > 0 {
        findings.push(
            Finding::warning(format!("the passwords of {old} roles are stored as md5: {named}"))
                .effect("who reads one can log in with it, and SCRAM can't be asked of them")
                .fix("\\password ROLE  -- in psql, for each of them, with scram-sha-256")
                .verify("SELECT count(*) FROM pg_authid WHERE rolpassword LIKE 'md5%'; -- 0"),
        );
    }
    if let Some(days) = facts.days_left.filter(|days| *days < DAYS_LEFT_MIN) {
        let user = identifier(&facts.user);
        findings.push(
            Finding::warning(format!("the password of {user} is valid for {days} days more"))
                .effect("then no new connection is opened, and clients wait until they are refused")
                .fix(format!("ALTER ROLE {user} VALID UNTIL 'infinity'; -- or a new password"))
                .verify(format!(
                    "SELECT rolvaliduntil FROM pg_roles WHERE rolname = {};",
                    literal(&facts.user)
                )),
        );
    }
    let seen = match facts.superuser {
        true => "no role has another",
        false => "of the roles' own only a superuser can see it",
    };
    (format!("new ones are {encryption}; {seen}"), findings)
}

/// Rows: what it is, its name, how many there are.
pub fn search_path_sql(patient: &Patient<'_>) -> String {
    let schemas: Vec<String> = patient.facts.schemas.iter().map(|schema| literal(schema)).collect();
    format!(
        "SELECT 'schema', quote_ident(n.nspname), count(*) OVER () FROM pg_namespace n \
         WHERE n.nspname = ANY (ARRAY[{}]::name[]) AND EXISTS (SELECT 1 \
           FROM aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a \
           WHERE a.grantee = 0 AND a.privilege_type = 'CREATE') \
         UNION ALL (SELECT 'function', p.oid::regprocedure::text, count(*) OVER () \
           FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
           WHERE p.prosecdef AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
             AND NOT EXISTS (SELECT 1 FROM unnest(p.proconfig) c WHERE c LIKE 'search_path=%') \
             AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') \
           ORDER BY 2 LIMIT {NAMED_MAX})",
        schemas.join(", ")
    )
}

pub fn search_path(patient: &Patient<'_>, rows: Vec<Row>) -> Judged {
    let mut findings = Vec::new();
    let (mut functions, mut count) = (Vec::new(), 0);
    for mut row in rows {
        let (kind, name) = (row.text(), row.text());
        if kind == "schema" {
            findings.push(
                Finding::warning(format!("everybody may create objects in schema {name}, where names are looked for"))
                    .effect("any role can put a function or table in the way of yours, which then runs with your rights")
                    .fix(format!("REVOKE CREATE ON SCHEMA {name} FROM PUBLIC;"))
                    .verify(format!("SELECT has_schema_privilege('public', {}, 'CREATE'); -- f", literal(&name))),
            );
        } else {
            count = row.number().unwrap_or_default();
            functions.push(name);
        }
    }
    if !functions.is_empty() {
        let names = listed(&functions, count);
        let fixes = functions
            .iter()
            .map(|name| format!("ALTER FUNCTION {name} SET search_path = pg_catalog, pg_temp; -- and the schemas it needs"));
        findings.push(
            Finding::warning(format!("SECURITY DEFINER without a search_path of its own: {names}"))
                .effect("who calls it chooses what its names mean, with its owner's rights")
                .fixes(fixes)
                .verify("SELECT oid::regprocedure, proconfig FROM pg_proc WHERE prosecdef;"),
        );
    }
    (format!("{}: nobody else creates there", patient.facts.schemas.join(", ")), findings)
}
