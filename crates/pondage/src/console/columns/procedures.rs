//! The columns of SHOW PROCEDURES.

use crate::console::table::Column;

pub const PROCEDURES: &[Column] = columns! {
    Text "database": "in which it is";
    Text "procedure": "with its schema; those of one name with other arguments are others";
    Text "arguments": "their names and types";
    Text "mode": "what calls of users without a section of their own get: `off`, `lane`, `train`, \
        `batch`";
    Text "key": "the parameters that tell which calls lock the same rows";
    Text "also": "parameters that lock rows beside; several sets have `;` between them";
    Text "key_source": "who says the key: `comment`, `configuration`, `command` or `body`; empty: \
        nobody";
    Numeric "calls": "since the start";
    Numeric "calls_per_second" (PerSecond): "over the last one to two `stats_period`s";
    Numeric "p50_us" (Micros): "half of the calls took no longer: the upper bound of a bucket, as in \
        [SHOW QUERIES](#show-queries)";
    Numeric "p99_us" (Micros): "99 of 100 calls took no longer, in the same way";
    Numeric "joined_percent" (Percent): "share of the calls that rode, alone or with others";
    Numeric "train": "how many statements were on their way together, on average, with one that \
        rode; NULL: none has";
    Numeric "retries": "sent again after a deadlock or serialization failure";
    Numeric "errors": "calls that ended in an error";
    Numeric "lock_wait_percent" (Percent): "of calls seen under way when the lock table was looked \
        at, those that waited for a lock; NULL: too few were seen";
    Text "problems": "what was said and can't be done, and keys that keep the wrong calls apart";
};
