//! The columns of what is about statements.

use crate::console::table::Column;

pub const QUERIES: &[Column] = columns! {
    Text "database": "of the pool";
    Text "user": "of the pool";
    Text "query": "the text with `?` for every constant; long ones are cut";
    Numeric "calls": "how often it was run";
    Numeric "total_time" (Micros): "from the request to the last byte of its answer, all calls \
        together";
    Numeric "mean" (Micros): "a call; NULL: none has ended";
    Numeric "p50" (Micros): "half of the calls took no longer. Durations are counted in buckets \
        that double (50, 100, 200 µs and so on), and this is the upper bound of the bucket: the true \
        value lies between it and its half. From 13107200 (13 s) on there is one bucket";
    Numeric "p99" (Micros): "99 of 100 calls took no longer, in the same way";
    Numeric "joined": "calls that were sent together with other clients' statements, or might have \
        been if there had been any";
    Numeric "joined_percent" (Percent): "their share in `calls`";
    Numeric "depth": "how many other statements were on their way with one that joined, on average; \
        NULL: none has joined";
    Numeric "prepared": "simple queries that were sent as a prepared statement";
    Numeric "again": "sent once more: skipped behind another's error, refused as a prepared \
        statement, stalled, or a server lost";
    Numeric "errors": "calls that ended in an error";
    Text "way": "how the last one travelled: `alone`, `pipeline`, `batch`, `train`; `cache`: \
        answered from memory";
    Text "why": "why it travelled so, with what parser and catalogues say of it \
        ([the words](coalescing.md#why-does-my-statement-not-join)). Where several workers have seen \
        the shape: the last one of the worker that has seen it most";
};

/// After the counters, a column for each [`crate::route::Why`] but `Free`.
pub const COALESCE: &[Column] = columns! {
    Text "database": "of the pool";
    Text "user": "of the pool";
    Numeric "trips": "writes to a server that took statements of one or more clients along";
    Numeric "joined": "statements that were sent together with others, or might have been";
    Numeric "depth": "`joined` per trip; NULL: no trip yet";
    Numeric "batched": "of those that joined: in one transaction with others";
    Numeric "trained": "of those that joined: writes that shared a flush";
    Numeric "prepared": "simple queries that were sent as a prepared statement";
    Numeric "skipped": "sent again: they were behind another's error, a prepared statement in place \
        of a text was refused, or a write in a train met a lock";
    Numeric "stalled": "sent again: they were behind a statement that took too long";
    Numeric "lost": "sent again: their server was lost";
    Numeric "alone_off": "travelled alone: coalesce is off for this pool, or its mode is session";
    Numeric "alone_transaction": "alone: part of a transaction or of a series of requests";
    Numeric "alone_pipelined": "alone: the client sent more behind it without waiting";
    Numeric "alone_unreadable": "alone: not one plain statement";
    Numeric "alone_new": "alone: not seen often enough";
    Numeric "alone_unjudged": "alone: parser and catalogues have not judged it yet";
    Numeric "alone_judged": "alone: parser or catalogues found something against it";
    Numeric "alone_writes_off": "alone: it writes, and `coalesce_writes` is off";
    Numeric "alone_slow": "alone: more than 1 of 10 took longer than `coalesce_short`, or it answers \
        at length";
    Numeric "alone_settings": "alone: no server had the settings of its session";
    Numeric "alone_again": "alone: it was sent again after it had come to nothing among others";
};

pub const ADVICE: &[Column] = columns! {
    Numeric "rank": "1 gains most; NULL before two minutes have passed";
    Numeric "gain_ms_per_second" (MillisPerSecond): "PostgreSQL's time that reads would no longer \
        take, or clients' time that they would no longer wait";
    Text "kind": "`cache`: a read that would be answered from memory, as counted in \
        [mode `advise`](cache.md#modes), a pool whose reads are worth counting, or caches that this \
        mode does not answer from; `procedure`: calls that wait for each other's locks and have an argument in common; `pool`: clients wait while \
        all servers work, or most servers never do; `transaction`: a client idles in a transaction \
        while others wait; `none`: nothing is said yet";
    Text "database": "of whom";
    Text "user": "of whom; NULL: of all users of the database";
    Text "subject": "a statement, a procedure, an option with its value, or a client";
    Text "advice": "what to do, and why it would help";
    Text "command": "a command of the console, or lines of the configuration: a section, and what \
        is to stand in it; NULL: none";
    Text "basis": "the figures that it is made of";
};
