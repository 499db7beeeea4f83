//! Values and arrays: written, and read back from a row.

use backend::calls::{self, oid, Calls, Columns, Heard};
use backend::WireError;
use proptest::prelude::*;
use wire::pg::backend as server;

/// The one parameter that `write` writes, as PostgreSQL would give it back in a row.
fn returned(write: impl FnOnce(&mut calls::Params<'_>)) -> Vec<u8> {
    let mut calls = Calls::new();
    calls.call(1, "", write).expect("appended");
    let length = u32::from_be_bytes(calls.out[1..5].try_into().expect("four bytes")) as usize;
    // Names, formats and the count before it, the formats of the result behind it.
    let value = &calls.out[5 + 2 + 4 + 2..length + 1 - 4];
    assert_eq!(value[..4], (value.len() as u32 - 4).to_be_bytes());
    value[4..].to_vec()
}

/// What `read` makes of a row with these columns.
fn read<T>(columns: &[Option<&[u8]>], mut read: impl FnMut(&mut Columns<'_>) -> T) -> T {
    let mut calls = Calls::new();
    calls.call(1, "", |_| {}).expect("appended");
    let mut script = Vec::new();
    server::put_bind_complete(&mut script);
    server::put_data_row(&mut script, columns);
    let mut result = None;
    let mut on = |heard: Heard<'_>| {
        if let Heard::Row { mut columns, .. } = heard {
            result = Some(read(&mut columns));
        }
    };
    calls.receive(&script, &mut on).expect("a sound answer");
    result.expect("a row")
}

#[test]
fn values_are_read_by_their_type_and_never_beyond() {
    let row: [Option<&[u8]>; 8] = [
        Some(&[0xff, 0xfe]),
        Some(&[0, 0, 1, 0]),
        Some(&[0, 0, 0, 0, 0, 0, 0, 9]),
        Some(&[0x3f, 0xf8, 0, 0, 0, 0, 0, 0]),
        Some(b"z"),
        Some("ü".as_bytes()),
        Some(b"\xff"),
        None,
    ];
    read(&row, |columns| {
        assert_eq!(columns.int2(), Ok(Some(-2)));
        assert_eq!(columns.int4(), Ok(Some(256)));
        assert_eq!(columns.int8(), Ok(Some(9)));
        assert_eq!(columns.float8(), Ok(Some(1.5)));
        assert_eq!(columns.char(), Ok(Some(b'z')));
        assert_eq!(columns.text(), Ok("ü"));
        assert_eq!(columns.text(), Err(WireError::NotUtf8("column")));
        assert!(columns.bytea().is_err(), "NULL is no bytes");
        assert!(columns.raw().is_err(), "there is no ninth column");
    });
    read(&[Some(b"abc"), None, None], |columns| {
        assert_eq!(columns.int8(), Err(WireError::Truncated("value")));
        assert_eq!(columns.int4(), Ok(None));
        assert_eq!(columns.array().map(Iterator::count), Ok(0));
    });
}

#[test]
fn an_array_that_claims_more_than_it_has_is_refused() {
    let sound = returned(|params| params.array(oid::BYTEA).bytea(b"x"));
    for length in 0..sound.len() {
        let result = read(&[Some(&sound[..length])], |columns| {
            columns.array().and_then(|mut elements| elements.try_for_each(|e| e.map(|_| ())))
        });
        assert!(result.is_err(), "{length} bytes");
    }
    let mut two_dimensions = sound.clone();
    two_dimensions[3] = 2;
    read(&[Some(&two_dimensions)], |columns| assert!(columns.array().is_err()));
    let mut huge = sound.clone();
    huge[12..16].copy_from_slice(&[0xff; 4]);
    read(&[Some(&huge)], |columns| assert!(columns.array().is_err()));
    let mut negative = sound;
    negative[20..24].copy_from_slice(&(-2i32).to_be_bytes());
    read(&[Some(&negative)], |columns| {
        assert!(columns.array().expect("a head").next().expect("an element").is_err());
    });
}

proptest! {
    #[test]
    fn arrays_of_bytes_come_back(values: Vec<Option<Vec<u8>>>) {
        let bytes = returned(|params| {
            let mut array = params.array(oid::BYTEA);
            for value in &values {
                match value {
                    Some(value) => array.bytea(value),
                    None => array.null(),
                }
            }
        });
        let back = read(&[Some(&bytes)], |columns| {
            let elements = columns.array().expect("an array");
            elements.map(|e| e.expect("an element").map(<[u8]>::to_vec)).collect::<Vec<_>>()
        });
        prop_assert_eq!(back, values);
    }

    #[test]
    fn arrays_of_numbers_come_back(ints: Vec<i64>, floats: Vec<f64>, shorts: Vec<i16>) {
        let bytes = returned(|p| { let mut a = p.array(oid::INT8); ints.iter().for_each(|v| a.int8(*v)); });
        let float_bytes = returned(|p| { let mut a = p.array(oid::FLOAT8); floats.iter().for_each(|v| a.float8(*v)); });
        let short_bytes = returned(|p| { let mut a = p.array(oid::INT2); shorts.iter().for_each(|v| a.int2(*v)); });
        let row = [Some(&bytes[..]), Some(&float_bytes[..]), Some(&short_bytes[..])];
        read(&row, |columns| {
            let mut next = || columns.array().expect("an array").map(|e| e.expect("whole").expect("not NULL"));
            let back: Vec<i64> = next().map(|e| calls::int8(e).expect("eight bytes")).collect();
            assert_eq!(back, ints);
            let back: Vec<u64> = next().map(|e| calls::float8(e).expect("eight bytes").to_bits()).collect();
            assert_eq!(back, floats.iter().map(|f| f.to_bits()).collect::<Vec<_>>());
            let back: Vec<i16> = next().map(|e| calls::int2(e).expect("two bytes")).collect();
            assert_eq!(back, shorts);
        });
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
        let mut calls = Calls::new();
        calls.call(1, "", |_| {}).expect("appended");
        let mut script = Vec::new();
        server::put_bind_complete(&mut script);
        script.push(b'D');
        script.extend_from_slice(&(bytes.len() as u32 + 4).to_be_bytes());
        script.extend_from_slice(&bytes);
        let mut on = |heard: Heard<'_>| {
            if let Heard::Row { mut columns, .. } = heard {
                while columns.left() > 0 {
                    let mut as_array = columns;
                    if let Ok(elements) = as_array.array() {
                        elements.take_while(Result::is_ok).for_each(drop);
                    }
                    if columns.raw().is_err() {
                        break;
                    }
                }
            }
        };
        let _ = calls.receive(&script, &mut on);
    }
}
