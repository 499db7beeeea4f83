//! A client that speaks the protocol byte by byte, blocking and with deadlines.
//!
//! Three heights: bytes (`send`, `message`), messages (`put`, `expect`, `until_ready`) and
//! statements (`run`, `rows`, `one`, `error`). Whatever goes otherwise than asked panics and says
//! what came instead.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wire::pg::auth::{md5_response, Binding, ScramClient, ScramKeys, SCRAM_SHA_256};
use wire::pg::backend::{self, tag, Auth};
use wire::pg::{frontend, header, startup};

use super::wait::DEADLINE;

/// Where a server listens.
#[derive(Debug, Clone)]
pub enum Address {
    Tcp(String, u16),
    /// The socket's path.
    Unix(PathBuf),
}

impl Address {
    pub fn tcp(host: &str, port: u16) -> Address {
        Address::Tcp(host.to_owned(), port)
    }

    /// PostgreSQL's name for the socket of `port` in `directory`.
    pub fn unix(directory: &Path, port: u16) -> Address {
        Address::Unix(directory.join(format!(".s.PGSQL.{port}")))
    }
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The sending half of a [`WireClient`].
pub struct Sender(Stream);

impl Sender {
    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        let sent = match &mut self.0 {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        };
        sent.unwrap_or_else(|e| panic!("sending {} bytes: {e}", bytes.len()));
    }
}

/// One message of the server.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    pub tag: u8,
    pub body: Vec<u8>,
}

/// The fields of an ErrorResponse or NoticeResponse; missing ones are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Complaint {
    pub severity: String,
    pub code: String,
    pub message: String,
    pub detail: String,
    pub hint: String,
}

/// See the head of this file.
pub struct WireClient {
    stream: Stream,
    inbox: Vec<u8>,
    /// What the server reported, last value of each.
    pub parameters: BTreeMap<String, String>,
    /// Process id and secret of BackendKeyData.
    pub key: Option<(u32, Vec<u8>)>,
    /// The status of the last ReadyForQuery: `I`, `T` or `E`.
    pub status: u8,
    /// Every notice since the log-in, in order.
    pub notices: Vec<Complaint>,
    /// NegotiateProtocolVersion messages so far.
    pub negotiations: usize,
}

impl WireClient {
    /// Connects and sends nothing.
    #[track_caller]
    pub fn connect(address: &Address) -> WireClient {
        let client = WireClient::try_connect(address);
        client.unwrap_or_else(|e| panic!("connecting to {address:?}: {e}"))
    }

    /// Connects, to a server that may not be there, and sends nothing.
    pub fn try_connect(address: &Address) -> std::io::Result<WireClient> {
        let stream = match address {
            Address::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port))?;
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
            Address::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
        };
        let mut client = WireClient {
            stream,
            inbox: Vec::new(),
            parameters: BTreeMap::new(),
            key: None,
            status: 0,
            notices: Vec::new(),
            negotiations: 0,
        };
        client.set_deadline(DEADLINE);
        Ok(client)
    }

    /// Connects and logs in by whatever method the server asks for.
    #[track_caller]
    pub fn login(address: &Address, user: &str, password: &str, database: &str) -> WireClient {
        let parameters = [("user", user), ("database", database)];
        WireClient::login_with(address, password, &parameters)
    }

    /// As [`WireClient::login`] with any start-up parameters (`user` among them).
    #[track_caller]
    pub fn login_with(
        address: &Address,
        password: &str,
        parameters: &[(&str, &str)],
    ) -> WireClient {
        match WireClient::try_login(address, password, parameters) {
            Ok(client) => client,
            Err(complaint) => panic!("log-in with {parameters:?} refused: {complaint:?}"),
        }
    }

    /// As [`WireClient::login_with`], or the error that refused it.
    #[track_caller]
    pub fn try_login(
        address: &Address,
        password: &str,
        parameters: &[(&str, &str)],
    ) -> Result<WireClient, Complaint> {
        let mut client = WireClient::connect(address);
        client.put(|out| startup::put_startup(out, 0, parameters));
        let user = parameters.iter().find(|(name, _)| *name == "user").map_or("", |(_, user)| user);
        client.authenticate(user, password)?;
        Ok(client)
    }

    /// Answers the server's questions after a start-up packet, up to the first ReadyForQuery.
    #[track_caller]
    pub fn authenticate(&mut self, user: &str, password: &str) -> Result<(), Complaint> {
        loop {
            let message = self.message();
            match message.tag {
                tag::AUTHENTICATION => self.answer(&message.body, user, password)?,
                tag::ERROR => return Err(message.complaint()),
                tag::NEGOTIATE => {}
                tag::READY_FOR_QUERY => return Ok(()),
                tag::BACKEND_KEY_DATA | tag::PARAMETER_STATUS | tag::NOTICE => {}
                _ => panic!("{message:?} during the log-in"),
            }
        }
    }

    #[track_caller]
    fn answer(&mut self, body: &[u8], user: &str, password: &str) -> Result<(), Complaint> {
        match backend::auth(body).expect("an Authentication message") {
            Auth::Ok => {}
            Auth::Cleartext => self.put(|out| frontend::put_password(out, password.as_bytes())),
            Auth::Md5(salt) => {
                let response = md5_response(user, password, salt);
                self.put(|out| frontend::put_password(out, response.as_bytes()));
            }
            Auth::Sasl(mechanisms) => {
                assert!(mechanisms.contains(&SCRAM_SHA_256), "offered {mechanisms:?}");
                self.scram(password)?;
            }
            other => panic!("the server asks for {other:?}"),
        }
        Ok(())
    }

    #[track_caller]
    fn scram(&mut self, password: &str) -> Result<(), Complaint> {
        let nonce = format!("{:032x}", rand::random::<u128>());
        let (client, first) = ScramClient::start(&nonce, Binding::Unable);
        self.put(|out| frontend::put_sasl_initial(out, SCRAM_SHA_256, &first));
        let reply = self.sasl_reply()?;
        let Ok(Auth::SaslContinue(server_first)) = backend::auth(&reply) else {
            panic!("expected AuthenticationSASLContinue, got {reply:?}");
        };
        let client = client.server_first(server_first).expect("a server-first message");
        let keys = ScramKeys::derive(password, &client.salt, client.iterations);
        let (client, last) = client.with_keys(&keys);
        self.put(|out| frontend::put_sasl_response(out, &last));
        let reply = self.sasl_reply()?;
        let Ok(Auth::SaslFinal(server_final)) = backend::auth(&reply) else {
            panic!("expected AuthenticationSASLFinal, got {reply:?}");
        };
        client.server_final(server_final).expect("the server knows the password");
        Ok(())
    }

    #[track_caller]
    fn sasl_reply(&mut self) -> Result<Vec<u8>, Complaint> {
        let message = self.message();
        match message.tag {
            tag::AUTHENTICATION => Ok(message.body),
            tag::ERROR => Err(message.complaint()),
            _ => panic!("expected a SASL message, got {message:?}"),
        }
    }
}

/// Bytes.
impl WireClient {
    /// How long a single read or write may take; the default is [`DEADLINE`].
    pub fn set_deadline(&mut self, deadline: Duration) {
        let limit = Some(deadline);
        match &self.stream {
            Stream::Tcp(s) => s.set_read_timeout(limit).and(s.set_write_timeout(limit)),
            Stream::Unix(s) => s.set_read_timeout(limit).and(s.set_write_timeout(limit)),
        }
        .expect("a time-out above zero");
    }

    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        self.try_send(bytes).unwrap_or_else(|e| panic!("sending {} bytes: {e}", bytes.len()));
    }

    /// Sends, to a server that may have hung up.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        }
    }

    /// Sends in pieces that end at `offsets` (ascending), with time for each to be read alone.
    #[track_caller]
    pub fn send_split(&mut self, bytes: &[u8], offsets: &[usize]) {
        // Not a wait for anything: it only makes it likely that the pieces arrive apart. The
        // outcome must be the same when they do not.
        const APART: Duration = Duration::from_millis(2);
        let mut at = 0;
        for &offset in offsets {
            self.send(&bytes[at..offset]);
            std::thread::sleep(APART);
            at = offset;
        }
        self.send(&bytes[at..]);
    }

    /// Ends the sending direction only; replies can still be read.
    pub fn finish_sending(&mut self) {
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Bytes as they come, for answers too large to be kept; 0 at the end of the stream.
    #[track_caller]
    pub fn read_raw(&mut self, into: &mut [u8]) -> usize {
        if self.inbox.is_empty() {
            let read = match &mut self.stream {
                Stream::Tcp(stream) => stream.read(into),
                Stream::Unix(stream) => stream.read(into),
            };
            return read.unwrap_or_else(|e| panic!("reading: {e}"));
        }
        let take = into.len().min(self.inbox.len());
        into[..take].copy_from_slice(&self.inbox[..take]);
        self.inbox.drain(..take);
        take
    }

    /// Another handle of the same connection, to send from another thread.
    pub fn sender(&self) -> Sender {
        Sender(match &self.stream {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone().expect("a duplicate")),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone().expect("a duplicate")),
        })
    }

    /// One untagged byte: the answer to SSLRequest or GSSENCRequest.
    #[track_caller]
    pub fn byte(&mut self) -> u8 {
        while self.inbox.is_empty() {
            assert!(self.fill(), "the server closed the connection instead of answering");
        }
        self.inbox.remove(0)
    }

    /// Reads what is there; `false` at the end of the stream, also by reset.
    #[track_caller]
    fn fill(&mut self) -> bool {
        let mut chunk = [0; 65536];
        let read = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(&mut chunk),
            Stream::Unix(stream) => stream.read(&mut chunk),
        };
        match read {
            Ok(0) => false,
            Ok(n) => {
                self.inbox.extend_from_slice(&chunk[..n]);
                true
            }
            Err(e) if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                false
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("no bytes from the server within the deadline; unread: {:?}", self.inbox)
            }
            Err(e) => panic!("reading: {e}"),
        }
    }
}

/// Messages.
impl WireClient {
    /// Sends what `build` appends, usually with the builders of `wire::pg::frontend`.
    #[track_caller]
    pub fn put(&mut self, build: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        build(&mut bytes);
        self.send(&bytes);
    }

    /// The next message, or `None` at the end of the stream. Parameters, key, notices and status
    /// are noted.
    #[track_caller]
    pub fn try_message(&mut self) -> Option<Message> {
        let message = self.try_message_or_cut();
        let cut = message.is_none() && !self.inbox.is_empty();
        assert!(!cut, "closed within a message: {:?}", self.inbox);
        message
    }

    /// As [`WireClient::try_message`], for a server that may end within a message.
    #[track_caller]
    pub fn try_message_or_cut(&mut self) -> Option<Message> {
        loop {
            if let Some(head) = header(&self.inbox).unwrap_or_else(|e| panic!("framing: {e}")) {
                if self.inbox.len() >= head.total {
                    let body = self.inbox[wire::pg::HEADER_BYTES..head.total].to_vec();
                    self.inbox.drain(..head.total);
                    let message = Message { tag: head.tag, body };
                    self.note(&message);
                    return Some(message);
                }
                self.inbox.reserve(head.total - self.inbox.len());
            }
            if !self.fill() {
                return None;
            }
        }
    }

    #[track_caller]
    pub fn message(&mut self) -> Message {
        self.try_message().expect("a message, but the server closed the connection")
    }

    /// The next message, which must have this tag. Notices and parameters before it are passed.
    #[track_caller]
    pub fn expect(&mut self, tag: u8) -> Message {
        loop {
            let message = self.message();
            if message.tag == tag {
                return message;
            }
            let unasked = matches!(message.tag, tag::NOTICE | tag::PARAMETER_STATUS);
            assert!(unasked, "expected '{}', got {message:?}", tag.escape_ascii());
        }
    }

    /// The next messages must have exactly these tags, one byte each: `client.expect_tags("12DCZ")`.
    #[track_caller]
    pub fn expect_tags(&mut self, tags: &str) -> Vec<Message> {
        let mut got = Vec::new();
        for tag in tags.bytes() {
            let message = self.message();
            let right = message.tag == tag;
            got.push(message);
            assert!(right, "expected the messages {tags:?}, got {got:?}");
        }
        got
    }

    /// Everything up to and including the next ReadyForQuery.
    #[track_caller]
    pub fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let Some(message) = self.try_message() else {
                panic!("closed before ReadyForQuery, after {messages:?}");
            };
            let ready = message.tag == tag::READY_FOR_QUERY;
            messages.push(message);
            if ready {
                return messages;
            }
        }
    }

    /// The server must close now; messages before that are returned.
    #[track_caller]
    pub fn until_closed(&mut self) -> Vec<Message> {
        std::iter::from_fn(|| self.try_message()).collect()
    }

    /// Nothing may arrive for `quiet`.
    #[track_caller]
    pub fn expect_silence(&mut self, quiet: Duration) {
        assert!(self.inbox.is_empty(), "unread: {:?}", self.inbox);
        self.set_deadline(quiet);
        let mut byte = [0; 1];
        let read = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(&mut byte),
            Stream::Unix(stream) => stream.read(&mut byte),
        };
        self.set_deadline(DEADLINE);
        match read {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            other => panic!("expected silence, got {other:?} {byte:?}"),
        }
    }

    fn note(&mut self, message: &Message) {
        match message.tag {
            tag::PARAMETER_STATUS => {
                let (name, value) = backend::parameter_status(&message.body).expect("a parameter");
                self.parameters.insert(name.to_owned(), value.to_owned());
            }
            tag::BACKEND_KEY_DATA => {
                let (pid, key) = backend::backend_key(&message.body).expect("a cancel key");
                self.key = Some((pid, key.to_vec()));
            }
            tag::READY_FOR_QUERY => self.status = message.body[0],
            tag::NOTICE => self.notices.push(message.complaint()),
            tag::NEGOTIATE => self.negotiations += 1,
            _ => {}
        }
    }
}

/// Statements.
impl WireClient {
    /// All replies of a simple query.
    #[track_caller]
    pub fn query(&mut self, sql: &str) -> Vec<Message> {
        self.put(|out| frontend::put_query(out, sql));
        self.until_ready()
    }

    /// As [`WireClient::query`], for a server that may end instead.
    pub fn try_query(&mut self, sql: &str) -> Option<Vec<Message>> {
        let mut bytes = Vec::new();
        frontend::put_query(&mut bytes, sql);
        self.try_send(&bytes).ok()?;
        let mut messages = Vec::new();
        while messages.last().is_none_or(|last: &Message| last.tag != tag::READY_FOR_QUERY) {
            messages.push(self.try_message_or_cut()?);
        }
        Some(messages)
    }

    /// Runs statements that must succeed.
    #[track_caller]
    pub fn run(&mut self, sql: &str) {
        self.rows(sql);
    }

    /// The rows of a simple query as text; all statements must succeed.
    #[track_caller]
    pub fn rows(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        let replies = self.query(sql);
        if let Some(error) = replies.iter().find(|m| m.tag == tag::ERROR) {
            panic!("{sql}: {:?}", error.complaint());
        }
        replies.iter().filter(|m| m.tag == tag::DATA_ROW).map(Message::values).collect()
    }

    /// The one value of the one row that `sql` gives.
    #[track_caller]
    pub fn one(&mut self, sql: &str) -> String {
        let rows = self.rows(sql);
        match rows.as_slice() {
            [row] => match row.as_slice() {
                [Some(value)] => value.clone(),
                _ => panic!("{sql}: expected one value, got {row:?}"),
            },
            _ => panic!("{sql}: expected one row, got {rows:?}"),
        }
    }

    /// The rows of a simple query by column name; NULL is an empty string.
    #[track_caller]
    pub fn table(&mut self, sql: &str) -> Vec<BTreeMap<String, String>> {
        let replies = self.query(sql);
        let mut columns = Vec::new();
        let mut rows = Vec::new();
        for reply in &replies {
            match reply.tag {
                tag::ROW_DESCRIPTION => columns = reply.columns(),
                tag::DATA_ROW => {
                    let values = reply.values().into_iter().map(Option::unwrap_or_default);
                    rows.push(columns.iter().cloned().zip(values).collect());
                }
                tag::ERROR => panic!("{sql}: {:?}", reply.complaint()),
                _ => {}
            }
        }
        rows
    }

    /// The error that a simple query must end with.
    #[track_caller]
    pub fn error(&mut self, sql: &str) -> Complaint {
        let replies = self.query(sql);
        let error = replies.iter().find(|m| m.tag == tag::ERROR);
        error.unwrap_or_else(|| panic!("{sql}: expected an error, got {replies:?}")).complaint()
    }

    /// Parse, Bind, Execute and Sync of an unnamed statement with text parameters.
    #[track_caller]
    pub fn extended(&mut self, sql: &str, values: &[Option<&[u8]>]) -> Vec<Message> {
        self.put(|out| {
            frontend::put_parse(out, b"", sql.as_bytes(), &[]);
            frontend::put_bind(out, b"", b"", values);
            frontend::put_execute(out, b"", 0);
            frontend::put_sync(out);
        });
        self.until_ready()
    }

    /// Asks, on a connection of its own, to cancel what this one runs; waits until the server
    /// has taken the request.
    #[track_caller]
    pub fn cancel(&self, address: &Address) {
        let (pid, key) = self.key.as_ref().expect("BackendKeyData");
        let mut other = WireClient::connect(address);
        other.put(|out| startup::put_cancel(out, *pid, key));
        let replies = other.until_closed();
        assert!(replies.is_empty(), "a CancelRequest is never answered, got {replies:?}");
    }

    /// Says goodbye and waits until the server has closed.
    #[track_caller]
    pub fn terminate(mut self) {
        let mut bytes = Vec::new();
        frontend::put_terminate(&mut bytes);
        if self.try_send(&bytes).is_ok() {
            self.until_closed();
        }
    }
}

impl Message {
    /// The fields of an ErrorResponse or NoticeResponse.
    #[track_caller]
    pub fn complaint(&self) -> Complaint {
        let right = matches!(self.tag, tag::ERROR | tag::NOTICE);
        assert!(right, "expected an error or notice, got {self:?}");
        let fields = backend::error_fields(&self.body).expect("error fields");
        let text = |field: Option<&str>| field.unwrap_or_default().to_owned();
        Complaint {
            severity: text(fields.severity()),
            code: text(fields.code()),
            message: text(fields.message()),
            detail: text(fields.detail()),
            hint: text(fields.hint()),
        }
    }

    /// The values of a DataRow in text format.
    #[track_caller]
    pub fn values(&self) -> Vec<Option<String>> {
        assert_eq!(self.tag, tag::DATA_ROW, "expected a DataRow, got {self:?}");
        let mut rest = &self.body[2..];
        let mut values = Vec::new();
        while let Some((word, after)) = rest.split_first_chunk::<4>() {
            let len = i32::from_be_bytes(*word);
            let (value, after) = after.split_at(usize::try_from(len).unwrap_or(0));
            values.push((len >= 0).then(|| String::from_utf8_lossy(value).into_owned()));
            rest = after;
        }
        values
    }

    /// The column names of a RowDescription.
    #[track_caller]
    pub fn columns(&self) -> Vec<String> {
        assert_eq!(self.tag, tag::ROW_DESCRIPTION, "expected a RowDescription, got {self:?}");
        // Bytes of a column after its name: table, attribute, type, size, modifier, format.
        const AFTER_NAME: usize = 4 + 2 + 4 + 2 + 4 + 2;
        let mut rest = &self.body[2..];
        let mut names = Vec::new();
        while let Some(end) = rest.iter().position(|byte| *byte == 0) {
            names.push(String::from_utf8_lossy(&rest[..end]).into_owned());
            rest = &rest[end + 1 + AFTER_NAME..];
        }
        names
    }

    /// The text of a CommandComplete.
    #[track_caller]
    pub fn command_tag(&self) -> String {
        assert_eq!(self.tag, tag::COMMAND_COMPLETE, "expected CommandComplete, got {self:?}");
        String::from_utf8_lossy(&self.body[..self.body.len() - 1]).into_owned()
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Enough to recognise a row; a megabyte would bury the failure.
        const SHOWN: usize = 120;
        if matches!(self.tag, tag::ERROR | tag::NOTICE) {
            return write!(f, "'{}' {:?}", self.tag.escape_ascii(), self.complaint());
        }
        let shown = &self.body[..self.body.len().min(SHOWN)];
        write!(f, "'{}' \"{}\"", self.tag.escape_ascii(), shown.escape_ascii())?;
        if self.body.len() > SHOWN {
            write!(f, "... {} bytes", self.body.len())?;
        }
        Ok(())
    }
}
