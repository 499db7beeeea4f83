//! The columns of what is about the read cache.

use crate::console::table::Column;

pub const CACHES: &[Column] = columns! {
    Text "name": "as given, or made of what it asks";
    Text "database": "in which it is";
    Text "query": "the statement as it was written; a long one is cut";
    Text "mode": "`off`, `advise`, `manual` or `auto`: in force for the database's users, if nothing \
        nearer is said about one";
    Text "freshness": "in force, as said with the cache or for the database";
    Text "max_lag": "in force, as said with the cache or for the database";
    Numeric "hits": "runs that were answered from memory";
    Numeric "misses": "runs of which nothing was kept, or what was kept was no longer valid";
    Numeric "hit_percent" (Percent): "`hits` of both; NULL: not run yet";
    Numeric "fills": "answers of PostgreSQL that were kept";
    Numeric "waits": "reads that had to wait for the stream, or for another client's answer";
    Numeric "entries": "answers in memory that were kept since the statement was named, those that \
        are no longer valid included";
    Numeric "bytes" (Bytes): "what these take";
    Text "created" (Utc): "when it was named";
    Text "state": "`ready`; `waiting`: there is no stream at the moment, or it does not tell of one \
        of its tables; `refused`: parser or catalogues found something against it; `off`: the mode \
        is `off` or `advise`";
    Text "why": "why it is not ready";
};

pub const PROXIED_QUERIES: &[Column] = columns! {
    Text "database": "of the pool";
    Text "user": "of the pool";
    Text "query": "the text that `CREATE CACHE FROM` takes, with `$1` for each constant";
    Numeric "calls": "how often it was run";
    Numeric "total_time" (Micros): "of all calls together";
    Numeric "would_hit": "with mode `advise`: calls that would have been answered from memory";
    Text "cacheable": "`yes`, `no`, or `unknown` before it was judged, which is after a few runs";
    Text "why": "why not";
};

pub const STREAMS: &[Column] = columns! {
    Text "database": "whose changes are followed";
    Text "state": "`connecting`, `preparing`, `following`, `lost` (tried again by itself), `refused` \
        (somebody has to change something first)";
    Text "why": "why it is not followed; the SQL that mends it, if SQL can";
    Text "since" (Utc): "since when it is lost or refused, else NULL";
    Text "lsn": "how far its changes are known, as a place in PostgreSQL's log; NULL: not yet";
    Text "server_lsn": "how far the server's log is; NULL: not known yet";
    Numeric "lag_bytes" (Bytes): "the difference of both";
    Numeric "delay_us" (Micros): "how long the last transaction took from its commit until Pondage \
        knew it, by both clocks; NULL: none yet";
    Text "slot": "the replication slot; NULL: none";
    Numeric "slot_bytes" (Bytes): "WAL that the server keeps because of it";
    Text "publication": "what the stream reads";
    Numeric "tables": "of the database";
    Numeric "followed": "tables whose changes are told";
    Numeric "begun": "how often the stream has begun";
    Text "not_followed": "why others' are not, for 10 of them, each with the SQL that mends it";
    Text "complaint": "what the server said when it last refused a change of the publication; NULL: \
        nothing";
};

pub const MIRRORS: &[Column] = columns! {
    Text "database": "in which the table is";
    Text "table": "with its schema";
    Text "columns": "those that are in memory; before there is a mirror, those that were asked for \
        (empty: all)";
    Text "state": "`ready`; `copying`; `waiting`: copied or about to be, and the stream has to come \
        so far; `failed`: tried again by itself; `refused`: the catalogues have something against \
        it; `off`: the mode is `off`";
    Text "why": "what it waits for, or what is wrong";
    Text "pinned": "`yes`: somebody has named it; `no`: it was made for what is read";
    Numeric "rows": "in memory";
    Numeric "bytes" (Bytes): "what these take, with everything";
    Text "indexes": "columns that have an index beside the key";
    Numeric "copied_percent" (Percent): "of the table's blocks; NULL while nothing is copied";
};
