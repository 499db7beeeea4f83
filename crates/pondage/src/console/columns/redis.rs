//! The columns of what is about the Redis door.

use crate::console::table::Column;

pub const REDIS: &[Column] = columns! {
    Text "key": "of a figure";
    Text "value": "as text; empty: none";
};

pub const REDIS_COMMANDS: &[Column] = columns! {
    Text "command": "its name, in lower case";
    Numeric "calls": "how often it ran";
    Numeric "failed": "of these, those that ended in an error";
    Numeric "rejected": "refused before it ran: wrong number of arguments and the like";
};

pub const REDIS_KEYS: &[Column] = columns! {
    Int4 "db": "the logical database";
    Text "key": "with escapes if it is no text; a long one is cut";
    Numeric "calls": "how often commands named it: an estimate, one command of 61 is looked at";
};

pub const REDIS_CLIENTS: &[Column] = columns! {
    Int8 "id": "as in CLIENT LIST, for CLIENT KILL; not for KILL_CLIENT";
    Text "user": "as it logged in; `default` before";
    Text "state": "`idle`, `blocked` (BLPOP and the like), `transaction` (since MULTI), `loading` \
        (waits for rows), `subscribed`";
    Text "addr": "the far end";
    Text "local_addr": "the near end";
    Int4 "db": "the logical database";
    Int4 "protocol": "2 or 3";
    Text "name": "as it has set it";
    Text "library": "as it has set it";
    Text "last_command": "what it gave last";
    Text "connect_time" (Utc): "when it came";
    Text "request_time" (Utc): "when it gave its last command";
};
