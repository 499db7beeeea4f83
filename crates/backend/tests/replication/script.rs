//! What a server says, as bytes, and a client that hears it.

use std::time::Duration;

use backend::moment::Moment;
use backend::replication::catalogue::Server;
use backend::replication::client::{Client, Options};
use backend::replication::{Ended, PublishedTable};
use wire::pg::backend::{self as messages, TxStatus};
use wire::pg::frontend;
use wire::pg::header;
use wire::pg::pgoutput::{self, put_tuple, Field, Message, Relation, RelationColumn};
use wire::pg::replication::{self, FromServer, StatusUpdate};
use wire::pg::HEADER_BYTES;

use super::recorder::Recorder;

pub const SILENCE: Duration = Duration::from_secs(30);
/// The consistent point of the scripts: 0/64.
pub const START: u64 = 0x64;

pub fn options(version: u32) -> Options {
    let server = Server { version, user: "app".to_owned(), ..Server::default() };
    Options {
        publication: "it's \"ours\"".to_owned(),
        slot: "pondage_1_1".to_owned(),
        server: Server { slots_max: 10, senders_max: 10, wal_block: 8192, ..server },
        silence: SILENCE,
        epoch: 1_000_000,
    }
}

pub fn table(oid: u32, name: &str) -> PublishedTable {
    PublishedTable {
        oid,
        schema: "public".to_owned(),
        name: name.to_owned(),
        partitioned: false,
        ancestors: Vec::new(),
    }
}

pub struct Rig {
    pub client: Client,
    pub told: Recorder,
}

impl Rig {
    pub fn new(version: u32) -> Rig {
        let client = Client::start(options(version), vec![table(7, "t")], Moment(0));
        Rig { client, told: Recorder::default() }
    }

    /// Up to the begin of the stream; what was said until then is thrown away.
    pub fn streaming(version: u32) -> Rig {
        let mut rig = Rig::new(version);
        rig.hear(&slot(), 0).expect("a slot");
        rig.hear(&copy_both(), 0).expect("a stream");
        rig.said();
        rig
    }

    pub fn hear(&mut self, bytes: &[u8], at: u64) -> Result<(), Ended> {
        self.client.receive(bytes, Moment(at), &mut self.told)
    }

    /// What the client has said since the last time.
    pub fn said(&mut self) -> Vec<u8> {
        std::mem::take(self.client.out())
    }

    /// The queries that it has said, and nothing else.
    pub fn asked(&mut self) -> Vec<String> {
        let said = self.said();
        let text = |(_, body): &(u8, Vec<u8>)| {
            let query = frontend::query(body).expect("a query");
            String::from_utf8(query.to_vec()).expect("UTF-8")
        };
        cut(&said).iter().map(text).collect()
    }

    /// The status updates that it has said, and nothing else.
    pub fn reported(&mut self) -> Vec<StatusUpdate> {
        let said = self.said();
        let update =
            |(_, body): &(u8, Vec<u8>)| replication::status_update(body).expect("a status update");
        cut(&said).iter().map(update).collect()
    }
}

fn cut(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some(head) = header(bytes).expect("a header") {
        found.push((head.tag, bytes[HEADER_BYTES..head.total].to_vec()));
        bytes = &bytes[head.total..];
    }
    assert!(bytes.is_empty());
    found
}

/// The answer to CREATE_REPLICATION_SLOT.
pub fn slot() -> Vec<u8> {
    let mut out = Vec::new();
    let column = |name| messages::Column { name, oid: 25, size: -1, format: 0 };
    let columns = ["slot_name", "consistent_point", "snapshot_name", "output_plugin"];
    messages::put_row_description(&mut out, &columns.map(column));
    let values: [Option<&[u8]>; 4] = [Some(b"pondage_1_1"), Some(b"0/64"), None, Some(b"pgoutput")];
    messages::put_data_row(&mut out, &values);
    messages::put_command_complete(&mut out, "CREATE_REPLICATION_SLOT");
    messages::put_ready(&mut out, TxStatus::Idle);
    out
}

pub fn copy_both() -> Vec<u8> {
    b"W\0\0\0\x07\0\0\0".to_vec()
}

pub fn error(code: &str, message: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let reply = messages::ErrorReply { severity: "ERROR", code, message, detail: None, hint: None };
    messages::put_error(&mut out, &reply);
    out
}

pub fn keepalive(end: u64, reply: bool) -> Vec<u8> {
    let mut out = Vec::new();
    replication::put_from_server(&mut out, &FromServer::Keepalive { end, time: 0, reply });
    out
}

/// A CopyData with one change.
pub fn change(message: &Message<'_>) -> Vec<u8> {
    let mut data = Vec::new();
    pgoutput::put(&mut data, message);
    let mut out = Vec::new();
    let data = FromServer::Data { start: 1, end: 1, time: 0, data: &data };
    replication::put_from_server(&mut out, &data);
    out
}

pub fn relation(oid: u32, columns: usize) -> Relation {
    let column = |number: usize| RelationColumn {
        name: format!("c{number}"),
        type_oid: 23,
        modifier: -1,
        key: number == 0,
    };
    Relation {
        oid,
        schema: "public".to_owned(),
        name: format!("t{oid}"),
        identity: b'd',
        columns: (0..columns).map(column).collect(),
    }
}

/// A row as its TupleData.
pub fn data<'a>(fields: &[Option<&'a str>]) -> Vec<u8> {
    let field = |field: &Option<&'a str>| match *field {
        None => Field::Null,
        Some("same") => Field::Unchanged,
        Some(text) => Field::Text(text.as_bytes()),
    };
    let mut out = Vec::new();
    put_tuple(&mut out, &fields.iter().map(field).collect::<Vec<_>>());
    out
}
