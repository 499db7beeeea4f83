//! The columns of what is about the process, and of tables that PgBouncer has and are empty here.

use crate::console::table::Column;

pub const LISTS: &[Column] = columns! {
    Text "list": "of what there are so many";
    Int4 "items": "how many";
};

pub const MEM: &[Column] = columns! {
    Text "name": "what the memory is for";
    Int4 "size" (Bytes): "of one";
    Int4 "used": "how many are in use";
    Int4 "free": "how many more there is room for without asking the system";
    Int4 "memtotal" (Bytes): "of all, used and free";
};

pub const STATE: &[Column] = columns! {
    Text "key": "what it can be";
    Text "value": "`yes` or `no`";
};

pub const CONFIG: &[Column] = columns! {
    Text "key": "section and name (`pool.pool_size`), or PgBouncer's name";
    Text "value": "in force; `***` for a secret";
    Text "default": "without anybody's word";
    Text "changeable": "`yes`: RELOAD is enough; `no`: it takes a restart";
};

pub const VERSION: &[Column] = columns! {
    Text "version": "`Pondage` and its version";
};

pub const EVENTS: &[Column] = columns! {
    Text "last" (Utc): "when it was said last";
    Text "level": "as in the [log](log.md)";
    Text "event": "as in the log";
    Text "database": "of which it was said; NULL: of none";
    Text "sqlstate": "that was told with it; NULL: none";
    Int8 "count": "how often, with those that the log has suppressed";
    Text "first" (Utc): "when it was said first";
    Text "detail": "what the last one said";
};

pub const DNS_HOSTS: &[Column] = columns! {
    Text "hostname": "of a server";
    Int8 "ttl" (Seconds): "until it is asked again";
    Text "addrs": "its addresses";
};

pub const DNS_ZONES: &[Column] = columns! {
    Text "zonename": "of a zone";
    Int8 "serial": "its serial number";
    Int4 "count": "names in it";
};

pub const PEERS: &[Column] = columns! {
    Int4 "peer_id": "of a peer";
    Text "host": "where it is";
    Int4 "port": "of the peer";
    Int4 "pool_size": "connections to it at the most";
};

pub const PEER_POOLS: &[Column] = columns! {
    Int4 "peer_id": "of a peer";
    Int4 "cl_active_cancel_req": "cancel requests that are passed on";
    Int4 "cl_waiting_cancel_req": "cancel requests that wait";
    Int4 "sv_active_cancel": "connections that carry one";
    Int4 "sv_login": "connections being opened";
};
