//! Requests that may be sent once more with their statement planned anew, so that their client does
//! not notice that definitions have changed.
//!
//! PostgreSQL's error is there to protect a client that relies on what it was told of the rows. So
//! the request itself has to ask what they look like; its formats may not be meant for certain
//! columns; and its values may not be made for types that PostgreSQL has told it.
//!
//! Source: PostgreSQL docs, "Message Formats", Bind; `RevalidateCachedQuery` in plancache.c.

use wire::pg::frontend::{self, tag, BindTail, Target};

use super::unit::Messages;

/// Whether `bytes` are a whole request of one prepared statement, from Bind or Describe to Sync, or
/// its Describe and a Flush, with nothing behind it, that means the same to its client whatever its
/// rows look like. `types` are those of its Parse; `described`: whether the client has been told of
/// others.
pub fn is_safe(bytes: &[u8], types: &[u8], described: impl FnOnce() -> bool) -> bool {
    let Some(bound) = described_itself(bytes) else { return false };
    let Some(values) = bound else { return true };
    let Ok(tail) = frontend::bind_tail(values) else { return false };
    tail.results.len() <= 2 && (are_declared(&tail, types) || !described())
}

/// Whether such a request leaves its batch open: drivers that prepare so end it with the first run.
pub fn flushes(bytes: &[u8]) -> bool {
    let mut messages = Messages(bytes);
    std::iter::from_fn(|| messages.next()).any(|(tag, _)| tag == tag::FLUSH)
}

/// The end of its Bind, if it has one. None: it is something else.
fn described_itself(bytes: &[u8]) -> Option<Option<&[u8]>> {
    let mut messages = Messages(bytes);
    let (mut name, mut bound, mut described) = (None, None, false);
    loop {
        let (tag, body) = messages.next()?;
        let statement = match tag {
            tag::BIND if bound.is_none() => {
                let head = frontend::bind_head(body).ok()??;
                bound = Some(&body[head.rest..]);
                head.statement
            }
            tag::DESCRIBE => {
                described = true;
                match frontend::describe(body).ok()? {
                    (Target::Statement, statement) => statement,
                    (Target::Portal, _) => continue,
                }
            }
            tag::EXECUTE => continue,
            tag::SYNC => return (described && messages.0.is_empty()).then_some(bound),
            tag::FLUSH if described && bound.is_none() && messages.0.is_empty() => {
                return Some(None)
            }
            _ => return None,
        };
        if *name.get_or_insert(statement) != statement {
            return None;
        }
    }
}

/// Whether the Parse has said what type each value has.
fn are_declared(tail: &BindTail<'_>, types: &[u8]) -> bool {
    let mut types = types.get(2..).unwrap_or_default().chunks_exact(4);
    (0..tail.len()).all(|_| types.next().is_some_and(|oid| *oid != [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::pg::frontend::*;

    const NONE: &[u8] = &[0, 0];
    const INT8: &[u8] = &[0, 1, 0, 0, 0, 20];

    /// For a client that has been told of types.
    fn is_safe(bytes: &[u8], types: &[u8]) -> bool {
        super::is_safe(bytes, types, || true)
    }

    fn request(values: &[Option<&[u8]>], then: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        put_bind(&mut out, b"", b"s", values);
        then(&mut out);
        put_sync(&mut out);
        out
    }

    fn described(out: &mut Vec<u8>) {
        put_describe(out, Target::Portal, b"");
        put_execute(out, b"", 0);
    }

    #[test]
    fn a_whole_request_that_asks_for_its_description_may_be_repeated() {
        let whole = request(&[], described);
        assert!(is_safe(&whole, NONE));
        let unknown = request(&[Some(b"7")], described);
        assert!(super::is_safe(&unknown, NONE, || false), "no type is known to the client");
        assert!(is_safe(&request(&[Some(b"7")], described), INT8));
        for cut in 0..whole.len() {
            assert!(!is_safe(&whole[..cut], NONE), "cut at {cut}");
        }
        let mut asks = Vec::new();
        put_describe(&mut asks, Target::Statement, b"s");
        put_sync(&mut asks);
        assert!(is_safe(&asks, NONE) && !flushes(&asks));
    }

    /// As asyncpg prepares. What runs is not repeated: it may go on behind the Flush.
    #[test]
    fn a_description_may_be_repeated_that_is_flushed_with_nothing_behind_it() {
        let mut asks = Vec::new();
        put_describe(&mut asks, Target::Statement, b"s");
        for cut in 0..asks.len() {
            assert!(!is_safe(&asks[..cut], NONE), "cut at {cut}");
        }
        put_flush(&mut asks);
        assert!(is_safe(&asks, NONE) && flushes(&asks));
        for more in [put_flush, put_sync] {
            let mut more_behind = asks.clone();
            more(&mut more_behind);
            assert!(!is_safe(&more_behind, NONE));
        }
        let mut runs = request(&[], described);
        runs.truncate(runs.len() - 5);
        put_flush(&mut runs);
        assert!(!is_safe(&runs, NONE));
        let mut only = Vec::new();
        put_flush(&mut only);
        assert!(!is_safe(&only, NONE));
    }

    #[test]
    fn what_its_client_may_take_for_something_else_is_not_repeated() {
        assert!(!is_safe(&request(&[], |out| put_execute(out, b"", 0)), NONE), "not described");
        assert!(!is_safe(&request(&[Some(b"7")], described), NONE), "a type is not declared");
        assert!(!is_safe(&request(&[Some(b"7")], described), &[0, 1, 0, 0, 0, 0]));
        let more = [request(&[], described), request(&[], described)].concat();
        assert!(!is_safe(&more, NONE), "more behind it");
        let others = request(&[], |out| put_describe(out, Target::Statement, b"other"));
        assert!(!is_safe(&others, NONE), "two statements");
        let twice = request(&[], |out| {
            described(out);
            put_bind(out, b"", b"s", &[]);
        });
        assert!(!is_safe(&twice, NONE));
        let closes = request(&[], |out| {
            described(out);
            put_close(out, Target::Statement, b"s");
        });
        assert!(!is_safe(&closes, NONE));
    }

    #[test]
    fn formats_for_certain_columns_are_not_asked_of_others() {
        let with = |formats: &[u8]| {
            // No portal, the statement, no parameters.
            let body = [b"\0s\0\0\0\0\0", formats].concat();
            let mut out = vec![b'B'];
            out.extend((body.len() as u32 + 4).to_be_bytes());
            out.extend(body);
            described(&mut out);
            put_sync(&mut out);
            is_safe(&out, NONE)
        };
        assert!(with(&[0, 0]));
        assert!(with(&[0, 1, 0, 1]), "one for all");
        assert!(!with(&[0, 2, 0, 1, 0, 1]), "one for each");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, types: Vec<u8>) {
            is_safe(&bytes, &types);
        }
    }
}
