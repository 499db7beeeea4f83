//! What somebody has to do before a database can be followed, as SQL to run.

use super::catalogue::Server;
use crate::login::ServerError;

/// Most bytes of SQL that names tables; beyond them it names none.
const SQL_BYTES_MAX: usize = 65_536;

/// What a superuser, or the owner, has to run; a line of comment where SQL can't do it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// One line.
    pub what: String,
    pub sql: Vec<String>,
}

const RESTART: &str = "-- then restart the server";

/// A name as SQL takes it, whatever is in it.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A string as SQL takes it (`standard_conforming_strings` is on).
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

impl Missing {
    pub fn wal_level(server: &Server) -> Missing {
        Missing {
            what: format!("wal_level of the server is {}, not logical", server.wal_level),
            sql: vec!["ALTER SYSTEM SET wal_level = 'logical';".to_owned(), RESTART.to_owned()],
        }
    }

    pub fn replication(server: &Server) -> Missing {
        Missing {
            what: format!("role {} has no REPLICATION attribute", identifier(&server.user)),
            sql: vec![format!("ALTER ROLE {} REPLICATION;", identifier(&server.user))],
        }
    }

    pub fn senders(server: &Server) -> Missing {
        Missing::limit("max_wal_senders", server.senders_max)
    }

    pub fn slots(server: &Server) -> Missing {
        Missing::limit("max_replication_slots", server.slots_max)
    }

    fn limit(name: &str, value: u32) -> Missing {
        let more = value.saturating_add(10);
        Missing {
            what: format!("all of {name} = {value} are in use"),
            sql: vec![format!("ALTER SYSTEM SET {name} = {more};"), RESTART.to_owned()],
        }
    }

    /// There is no publication, and the role may not create it. `tables` could be in it.
    pub fn publication(server: &Server, name: &str, tables: &[String]) -> Missing {
        let (user, database) = (identifier(&server.user), identifier(&server.database));
        let grant = format!("GRANT CREATE ON DATABASE {database} TO {user};");
        let create = create_publication(server, name, tables);
        Missing {
            what: format!(
                "there is no publication {}, and role {user} may not create one in database \
                 {database}",
                identifier(name)
            ),
            sql: vec![if create.len() > SQL_BYTES_MAX { grant } else { create }],
        }
    }

    /// The publication is somebody else's and leaves kinds of changes out.
    pub fn kinds(name: &str) -> Missing {
        Missing {
            what: format!(
                "publication {} leaves kinds of changes out, and is another role's",
                identifier(name)
            ),
            sql: vec![publish_all(name)],
        }
    }

    /// The publication is somebody else's and tells changes of partitions as their root's.
    pub fn via_root(name: &str) -> Missing {
        Missing {
            what: format!(
                "publication {} hides partitions behind their root, and with that TRUNCATE of a \
                 partition; it is another role's",
                identifier(name)
            ),
            sql: vec![tell_partitions(name)],
        }
    }

    /// What an error of the log-in for replication asks for, if it is one of those that last.
    pub fn at_login(server: &Server, code: &str, message: &str) -> Option<Missing> {
        match code {
            "42501" => Some(Missing::replication(server)),
            "53300" if message.contains("max_wal_senders") => Some(Missing::senders(server)),
            _ => None,
        }
    }

    /// The same for CREATE_REPLICATION_SLOT.
    pub fn at_slot(server: &Server, error: &ServerError) -> Option<Missing> {
        match error.code.as_str() {
            "42501" => Some(Missing::replication(server)),
            "53400" => Some(Missing::slots(server)),
            "55000" if error.message.contains("wal_level") => Some(Missing::wal_level(server)),
            _ => None,
        }
    }
}

/// CREATE PUBLICATION for these tables, which are written as SQL has them.
pub(super) fn create_publication(server: &Server, name: &str, tables: &[String]) -> String {
    let tables = match tables.is_empty() {
        true => String::new(),
        false => format!(" FOR TABLE {}", tables.join(", ")),
    };
    // Without it a generated column in a whole old row makes UPDATEs fail from 18 on.
    let generated = match server.version >= 180_000 {
        true => ", publish_generated_columns = stored",
        false => "",
    };
    format!(
        "CREATE PUBLICATION {}{tables} WITH (publish = 'insert, update, delete, truncate', \
         publish_via_partition_root = false{generated});",
        identifier(name)
    )
}

pub(super) fn publish_all(name: &str) -> String {
    let name = identifier(name);
    format!("ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate');")
}

pub(super) fn tell_partitions(name: &str) -> String {
    let name = identifier(name);
    format!("ALTER PUBLICATION {name} SET (publish_via_partition_root = false);")
}
