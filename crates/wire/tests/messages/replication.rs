//! CopyData of a replication stream: "Streaming Replication Protocol".

use wire::pg::backend::tag;
use wire::pg::replication::{
    from_server, put_from_server, put_status_update, status_update, FromServer, Lsn, StatusUpdate,
};
use wire::pg::WireError;

use super::{body_of, built};

const DATA: &[u8] = b"w\0\0\0\0\x01\x52\x3d\x40\0\0\0\0\x01\x52\x3d\x70\
                      \0\x02\xa5\x94\xc5\x95\xb8\0B...";
const KEEPALIVE: &[u8] = b"k\0\0\0\x16\xb3\x74\xd8\x48\0\x02\xa5\x94\xc5\x95\xb8\0\x01";
const STATUS: &[u8] = b"r\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\
                        \0\x02\xa5\x94\xc5\x95\xb8\0\x01";
const TIME: i64 = 0x0002_a594_c595_b800;

#[test]
fn data_and_keepalives_of_a_server() {
    let data = FromServer::Data { start: 0x1523d40, end: 0x1523d70, time: TIME, data: b"B..." };
    assert_eq!(from_server(DATA), Ok(data));
    assert_eq!(body_of(&built(|out| put_from_server(out, &data)), tag::COPY_DATA), DATA);
    let keepalive = FromServer::Keepalive { end: 0x16_b374_d848, time: TIME, reply: true };
    assert_eq!(from_server(KEEPALIVE), Ok(keepalive));
    assert_eq!(body_of(&built(|out| put_from_server(out, &keepalive)), tag::COPY_DATA), KEEPALIVE);
    let what = "kind of a replication message";
    assert_eq!(from_server(STATUS), Err(WireError::Unexpected { what, got: b'r'.into() }));
    assert_eq!(from_server(&[KEEPALIVE, b"x"].concat()), Err(WireError::Trailing("keepalive")));
}

#[test]
fn status_updates_of_a_client() {
    let update = StatusUpdate { written: 3, flushed: 2, applied: 1, time: TIME, reply: true };
    assert_eq!(status_update(STATUS), Ok(update));
    assert_eq!(body_of(&built(|out| put_status_update(out, &update)), tag::COPY_DATA), STATUS);
    let quiet = StatusUpdate { reply: false, ..update };
    let quiet = built(|out| put_status_update(out, &quiet));
    assert!(!status_update(body_of(&quiet, tag::COPY_DATA)).expect("a status update").reply);
}

#[test]
fn no_cut_of_a_head_is_taken_for_a_message() {
    for end in 0..25 {
        assert!(from_server(&DATA[..end]).is_err(), "cut at {end}");
    }
    for end in 0..KEEPALIVE.len() {
        assert!(from_server(&KEEPALIVE[..end]).is_err(), "cut at {end}");
    }
    for end in 0..STATUS.len() {
        assert!(status_update(&STATUS[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn positions_as_postgresql_writes_them() {
    let told = [("0/0", 0), ("16/B374D848", 0x16_b374_d848), ("FFFFFFFF/FFFFFFFF", u64::MAX)];
    for (text, position) in told {
        assert_eq!(text.parse(), Ok(Lsn(position)));
        assert_eq!(Lsn(position).to_string(), text);
    }
    assert_eq!("16/b374d848".parse(), Ok(Lsn(0x16_b374_d848)));
    assert_eq!("0/00000001".parse(), Ok(Lsn(1)));
    for wrong in ["", "/", "0", "0/", "/0", "0/0/0", "+1/0", "0/ 1", "100000000/0", "0/g"] {
        assert!(wrong.parse::<Lsn>().is_err(), "{wrong:?}");
    }
}
