//! Keeps what a server gives to each owner, and runs a server's answer at every split.

use std::collections::BTreeMap;
use std::sync::Arc;

use backend::moment::Moment;
use backend::reply::{Event, Owner, Replies};
use backend::server::{Lost, Server};
use backend::settings::Settings;
use wire::pg::backend as put;
use wire::pg::backend::{ErrorReply, TxStatus};

pub const A: Owner = Owner(1);
pub const B: Owner = Owner(2);

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recorder {
    /// Bytes by owner.
    pub bytes: BTreeMap<u32, Vec<u8>>,
    /// Events in order, as text.
    pub events: Vec<(u32, String)>,
    /// Owners in the order in which they got bytes; the same one twice in a row counts once.
    pub turns: Vec<u32>,
}

impl Recorder {
    pub fn of(&self, owner: Owner) -> &[u8] {
        self.bytes.get(&owner.0).map_or(b"", Vec::as_slice)
    }

    /// The tags of the messages that an owner got.
    pub fn tags(&self, owner: Owner) -> String {
        let (mut tags, mut rest) = (String::new(), self.of(owner));
        while let Some(header) = wire::pg::header(rest).expect("a sound header") {
            tags.push(header.tag as char);
            rest = rest.get(header.total..).expect("a whole message");
        }
        assert!(rest.is_empty(), "a message was cut");
        tags
    }

    pub fn told(&self, owner: Owner) -> Vec<&str> {
        let own = self.events.iter().filter(|(to, _)| *to == owner.0);
        own.map(|(_, event)| event.as_str()).collect()
    }
}

impl Replies for Recorder {
    fn bytes(&mut self, owner: Owner, bytes: &[u8]) {
        assert_ne!(owner, Owner::NOBODY);
        assert!(!bytes.is_empty());
        if self.turns.last() != Some(&owner.0) {
            self.turns.push(owner.0);
        }
        self.bytes.entry(owner.0).or_default().extend_from_slice(bytes);
    }

    fn event(&mut self, owner: Owner, event: Event<'_>) {
        let text = match event {
            Event::SetupFailed(_) => "SetupFailed".to_owned(),
            Event::Dropped(tag) => format!("Dropped({})", tag.escape_ascii()),
            other => format!("{other:?}"),
        };
        self.events.push((owner.0, text));
    }
}

pub fn server() -> Server {
    Server::new(Arc::new(Settings::default()), Moment(0))
}

/// Builds a server's answer.
#[derive(Default)]
pub struct Answer(pub Vec<u8>);

impl Answer {
    pub fn new() -> Answer {
        Answer::default()
    }

    /// Messages without a body worth a word, by tag; `D` and `d` carry `mark`.
    pub fn say(mut self, tags: &str, mark: &str) -> Answer {
        for tag in tags.chars() {
            match tag {
                '1' => put::put_parse_complete(&mut self.0),
                '2' => put::put_bind_complete(&mut self.0),
                '3' => put::put_close_complete(&mut self.0),
                'n' => put::put_no_data(&mut self.0),
                'I' => put::put_empty_query(&mut self.0),
                's' => put::put_portal_suspended(&mut self.0),
                'D' => put::put_data_row(&mut self.0, &[Some(mark.as_bytes())]),
                'C' => put::put_command_complete(&mut self.0, "SELECT 1"),
                'T' => put::put_row_description(&mut self.0, &[]),
                't' => put::put_parameter_description(&mut self.0, &[25]),
                'A' => put::put_notification(&mut self.0, 1, "a", mark),
                'Z' => put::put_ready(&mut self.0, TxStatus::Idle),
                'G' => self.0.extend_from_slice(b"G\0\0\0\x07\0\0\0"),
                'H' => self.0.extend_from_slice(b"H\0\0\0\x07\0\0\0"),
                'd' => {
                    self.0.push(b'd');
                    self.0.extend_from_slice(&(mark.len() as u32 + 4).to_be_bytes());
                    self.0.extend_from_slice(mark.as_bytes());
                }
                'c' => self.0.extend_from_slice(b"c\0\0\0\x04"),
                'E' => self = self.error("ERROR", mark),
                other => panic!("no message for {other}"),
            }
        }
        self
    }

    pub fn failure(mut self, code: &str) -> Answer {
        let reply = ErrorReply { severity: "ERROR", code, message: "no", detail: None, hint: None };
        put::put_error(&mut self.0, &reply);
        self
    }

    pub fn error(mut self, severity: &str, message: &str) -> Answer {
        let reply = ErrorReply { severity, code: "22012", message, detail: None, hint: None };
        put::put_error(&mut self.0, &reply);
        self
    }

    pub fn notice(mut self, message: &str) -> Answer {
        let severity = "NOTICE";
        let reply = ErrorReply { severity, code: "00000", message, detail: None, hint: None };
        put::put_notice(&mut self.0, &reply);
        self
    }

    pub fn notification(mut self, channel: &str) -> Answer {
        put::put_notification(&mut self.0, 7, channel, "");
        self
    }

    pub fn complete(mut self, tag: &str) -> Answer {
        put::put_command_complete(&mut self.0, tag);
        self
    }

    pub fn parameter(mut self, name: &str, value: &str) -> Answer {
        put::put_parameter_status(&mut self.0, name, value);
        self
    }

    pub fn ready(mut self, status: TxStatus) -> Answer {
        put::put_ready(&mut self.0, status);
        self
    }
}

/// Runs `ask` and then the answer: whole, cut at each byte, and byte by byte. All must come to
/// the same.
pub fn at_every_split(
    ask: impl Fn(&mut Server, &mut Recorder),
    answer: Answer,
) -> Result<(Server, Recorder), Lost> {
    let bytes = answer.0;
    let run = |cuts: &[usize]| {
        let (mut server, mut recorder) = (server(), Recorder::default());
        ask(&mut server, &mut recorder);
        let mut from = 0;
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            server.receive(&bytes[from..cut], &mut recorder)?;
            from = cut;
        }
        Ok((server, recorder))
    };
    let whole = run(&[]);
    let all: Vec<usize> = (1..bytes.len()).collect();
    for cuts in all.iter().map(std::slice::from_ref).chain([&all[..]]) {
        match (&whole, run(cuts)) {
            (Ok((server, recorder)), Ok((cut_server, cut_recorder))) => {
                assert_eq!(*recorder, cut_recorder, "cut at {cuts:?}");
                assert_eq!(server.is_quiet(), cut_server.is_quiet());
                assert_eq!(server.status(), cut_server.status());
            }
            (Err(error), Err(cut_error)) => assert_eq!(*error, cut_error),
            (whole, cut) => panic!("{whole:?} whole, {cut:?} when cut at {cuts:?}"),
        }
    }
    whole
}
