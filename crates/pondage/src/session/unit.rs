//! One statement with all its messages, kept until it is answered: a Query, or Bind, Execute and
//! Sync with what belongs to them.

use std::sync::Arc;

use backend::lanes::Keys;
use backend::moment::Moment;
use backend::statement::Statement;
use wire::pg::frame::{self, HEADER_BYTES};
use wire::pg::frontend::{self, tag, BindHead, Parse, Target};

use super::client::NONE;
use crate::procedures::Travel;
use crate::route::Way;

/// How a unit is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A Query, as it came.
    Query,
    /// A Query, as Bind and Execute of a prepared statement; its values begin here in `bytes`.
    StandIn { values: u32 },
    /// The messages of the extended protocol.
    Extended,
}

/// A statement that shares a server with others'.
#[derive(Debug)]
pub struct Unit {
    /// What the client sent, and behind it, for a stand-in, the end of its Bind.
    pub bytes: Vec<u8>,
    pub form: Form,
    pub way: Way,
    pub shape: u32,
    /// The prepared statement that is bound; none: a Query, or the unnamed one in `bytes`.
    pub statement: Option<Arc<Statement>>,
    pub arrived: Moment,
    /// What it locks, as far as that is known.
    pub keys: Keys,
    /// On a train.
    pub travel: Travel,
    /// Most statements of a train that it rides in.
    pub max_train: u16,
    /// How often it may still be sent again after a deadlock or a serialization failure.
    pub retries: u32,
    /// The server that carries it; [`NONE`] while it waits.
    pub server: u32,
    /// How often it was sent and came to nothing.
    pub tries: u8,
    /// Statements of others on their way with it.
    pub company: u16,
    /// It was answered by an error.
    pub failed: bool,
    /// Its Parse was.
    pub unparsed: bool,
    /// Its answer is held back until it is whole, since it may yet be sent again.
    pub held: bool,
    /// And on until the train has arrived.
    pub tail: bool,
    /// Its client wants it cancelled, once it is its turn.
    pub cancelled: bool,
    /// Answered, and held back until what it has done is safe.
    pub done: bool,
}

impl Default for Unit {
    fn default() -> Unit {
        Unit {
            bytes: Vec::new(),
            form: Form::Query,
            way: Way::Pipeline,
            shape: NONE,
            statement: None,
            arrived: Moment(0),
            keys: Keys::new(),
            travel: Travel::Train,
            max_train: u16::MAX,
            retries: 0,
            server: NONE,
            tries: 0,
            company: 0,
            failed: false,
            unparsed: false,
            held: false,
            tail: false,
            cancelled: false,
            done: false,
        }
    }
}

impl Unit {
    /// The messages as the client sent them.
    pub fn as_it_came(&self) -> &[u8] {
        match self.form {
            Form::StandIn { values } => &self.bytes[..values as usize],
            Form::Query | Form::Extended => &self.bytes,
        }
    }
}

/// The messages of a statement in the extended protocol.
#[derive(Debug)]
pub struct Extended<'a> {
    /// Of the unnamed statement.
    pub parse: Option<Parse<'a>>,
    pub bind: BindHead<'a>,
    /// Formats and values.
    pub values: &'a [u8],
    /// What the portal's rows look like is asked.
    pub describe: bool,
}

/// Reads `[Parse ""] Bind "" [Describe portal] Execute all Sync` with nothing behind it. None: it
/// is not that, or not all of it.
pub fn extended(bytes: &[u8]) -> Option<Extended<'_>> {
    let mut messages = Messages(bytes);
    let (mut tag, mut body) = messages.next()?;
    let mut parse = None;
    if tag == tag::PARSE {
        parse = Some(frontend::parse(body).ok().filter(|parse| parse.name.is_empty())?);
        (tag, body) = messages.next()?;
    }
    if tag != tag::BIND {
        return None;
    }
    let bind = frontend::bind_head(body).ok()??;
    if !bind.portal.is_empty() || (parse.is_some() && !bind.statement.is_empty()) {
        return None;
    }
    let values = &body[bind.rest..];
    (tag, body) = messages.next()?;
    let describe = tag == tag::DESCRIBE;
    if describe {
        if frontend::describe(body).ok()? != (Target::Portal, b"") {
            return None;
        }
        (tag, body) = messages.next()?;
    }
    if tag != tag::EXECUTE || frontend::execute(body).ok()? != (b"", 0) {
        return None;
    }
    (tag, _) = messages.next()?;
    (tag == tag::SYNC && messages.0.is_empty()).then_some(Extended {
        parse,
        bind,
        values,
        describe,
    })
}

pub(super) struct Messages<'a>(pub &'a [u8]);

impl<'a> Messages<'a> {
    pub fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let header = frame::header(self.0).ok()??;
        let message = self.0.get(..header.total)?;
        self.0 = &self.0[header.total..];
        Some((header.tag, &message[HEADER_BYTES..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::pg::frontend::*;

    fn unit(parse: Option<&[u8]>, portal: &[u8], rows: i32, describe: Option<Target>) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(name) = parse {
            put_parse(&mut out, name, b"select $1", &[0, 0]);
        }
        put_bind(&mut out, portal, b"", &[Some(b"7")]);
        if let Some(target) = describe {
            put_describe(&mut out, target, b"");
        }
        put_execute(&mut out, portal, rows);
        put_sync(&mut out);
        out
    }

    #[test]
    fn a_whole_statement_is_read_and_nothing_else() {
        let whole = unit(Some(b""), b"", 0, Some(Target::Portal));
        let read = extended(&whole).expect("a whole one");
        assert_eq!(read.parse.map(|parse| parse.query), Some(&b"select $1"[..]));
        assert!(read.describe);
        assert_eq!(read.values, [0, 0, 0, 1, 0, 0, 0, 1, b'7', 0, 0]);
        assert!(extended(&unit(None, b"", 0, None)).is_some_and(|read| !read.describe));
        for cut in 0..whole.len() {
            assert!(extended(&whole[..cut]).is_none(), "cut at {cut}");
        }
        let more = [whole.clone(), unit(None, b"", 0, None)].concat();
        assert!(extended(&more).is_none(), "more behind it");
    }

    #[test]
    fn what_could_outlive_its_transaction_is_not_read() {
        assert!(extended(&unit(Some(b"named"), b"", 0, None)).is_none());
        assert!(extended(&unit(None, b"portal", 0, None)).is_none());
        assert!(extended(&unit(None, b"", 10, None)).is_none(), "a part of the rows");
        assert!(extended(&unit(None, b"", 0, Some(Target::Statement))).is_none());
    }
}
