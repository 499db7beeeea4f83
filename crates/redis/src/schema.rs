//! The tables and functions of the schema `redis`, and how they come into a database.
//!
//! [`install`] is one text for one simple query. It may be sent at every start: it does nothing
//! when the schema is as it should be, and gateways that start together wait for one another.

use std::fmt::Write;

/// One step from a version of the schema to the next.
#[derive(Debug)]
pub struct Migration {
    /// The version that it leads to.
    pub version: i32,
    pub sql: &'static str,
}

/// All steps, in order. What has been released is never changed, only followed.
pub fn migrations() -> &'static [Migration] {
    &[
        Migration {
            version: 1,
            sql: concat!(
                include_str!("schema/tables.sql"),
                include_str!("schema/writers.sql"),
                include_str!("schema/engine.sql"),
                include_str!("schema/views.sql"),
                include_str!("schema/functions.sql"),
                include_str!("schema/text.sql"),
            ),
        },
        Migration { version: 2, sql: include_str!("schema/libraries.sql") },
    ]
}

/// Whether the schema is there at all.
pub const IS_PRESENT: &str = "SELECT to_regclass('redis.version') IS NOT NULL";

/// Which version it has; an error if it is not there.
pub const VERSION: &str = "SELECT version FROM redis.version";

/// What a session of the gateway sets before all else. The planner gets no choice: every statement
/// looks rows up by their keys, and plans are made before there are statistics.
pub const SESSION: &str = "\
    SET redis.engine = 'on'; SET client_encoding = 'UTF8'; SET plan_cache_mode = \
    force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; SET \
    enable_mergejoin = off; SET enable_bitmapscan = off; SET jit = off; SET \
    default_transaction_isolation = 'read committed'; SET search_path = pg_catalog";

/// The advisory lock of the gateway that serves a database, held by one of its sessions:
/// "pondage" and a number.
pub const GATEWAY_LOCK: i64 = i64::from_be_bytes(*b"pondage\x01");

/// The lock of who installs, until the end of the transaction.
const INSTALL_LOCK: i64 = i64::from_be_bytes(*b"pondage\x02");

/// Brings the schema to the newest version, in one transaction. An error when it is newer than
/// this program (SQLSTATE RD006).
pub fn install() -> String {
    let newest = migrations().last().map_or(0, |migration| migration.version);
    let mut sql = format!(
        "DO $pondage_install$\nDECLARE\n    have int := 0;\nBEGIN\n\
         PERFORM pg_advisory_xact_lock({INSTALL_LOCK});\n\
         IF to_regclass('redis.version') IS NOT NULL THEN\n\
         EXECUTE 'SELECT version FROM redis.version' INTO have;\n\
         END IF;\n\
         IF have > {newest} THEN\n\
         RAISE EXCEPTION USING ERRCODE = 'RD006', MESSAGE = format(\
         'the schema redis has version %s, this program knows versions up to {newest}', have);\n\
         END IF;\n"
    );
    for Migration { version, sql: step } in migrations() {
        let written = write!(
            sql,
            "IF have < {version} THEN\nEXECUTE $pondage_step${step}$pondage_step$;\n\
             DELETE FROM redis.version;\nINSERT INTO redis.version VALUES ({version});\nEND IF;\n"
        );
        debug_assert!(written.is_ok(), "a string takes everything");
    }
    sql.push_str("END $pondage_install$");
    sql
}
