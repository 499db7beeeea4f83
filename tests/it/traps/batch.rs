//! Messages of the extended protocol, several in one write.

use wire::pg::frontend::{self, Target};

use crate::kit::wireclient::Message;
use crate::kit::WireClient;

/// `Batch::new().parse("s", "select 1").sync()`: what a client sends at once.
#[derive(Debug, Clone, Default)]
pub struct Batch(pub Vec<u8>);

impl Batch {
    pub fn new() -> Batch {
        Batch::default()
    }

    pub fn parse(mut self, name: &str, sql: &str) -> Batch {
        frontend::put_parse(&mut self.0, name.as_bytes(), sql.as_bytes(), &[]);
        self
    }

    /// To the portal of the same name, with values in text format.
    pub fn bind(self, statement: &str, values: &[&str]) -> Batch {
        self.bind_to("", statement, values)
    }

    pub fn bind_to(mut self, portal: &str, statement: &str, values: &[&str]) -> Batch {
        let values: Vec<_> = values.iter().map(|value| Some(value.as_bytes())).collect();
        frontend::put_bind(&mut self.0, portal.as_bytes(), statement.as_bytes(), &values);
        self
    }

    /// The unnamed portal, all rows.
    pub fn execute(self) -> Batch {
        self.execute_of("", 0)
    }

    pub fn execute_of(mut self, portal: &str, rows: i32) -> Batch {
        frontend::put_execute(&mut self.0, portal.as_bytes(), rows);
        self
    }

    pub fn describe(mut self, statement: &str) -> Batch {
        frontend::put_describe(&mut self.0, Target::Statement, statement.as_bytes());
        self
    }

    pub fn describe_portal(mut self, portal: &str) -> Batch {
        frontend::put_describe(&mut self.0, Target::Portal, portal.as_bytes());
        self
    }

    pub fn close(mut self, statement: &str) -> Batch {
        frontend::put_close(&mut self.0, Target::Statement, statement.as_bytes());
        self
    }

    pub fn close_portal(mut self, portal: &str) -> Batch {
        frontend::put_close(&mut self.0, Target::Portal, portal.as_bytes());
        self
    }

    pub fn sync(mut self) -> Batch {
        frontend::put_sync(&mut self.0);
        self
    }

    pub fn flush(mut self) -> Batch {
        frontend::put_flush(&mut self.0);
        self
    }

    pub fn query(mut self, sql: &str) -> Batch {
        frontend::put_query(&mut self.0, sql);
        self
    }

    /// FunctionCall with text arguments and result.
    /// Source: PostgreSQL docs, "Message Formats", FunctionCall.
    pub fn call(self, function: u32, arguments: &[&str]) -> Batch {
        let mut body = function.to_be_bytes().to_vec();
        body.extend(0u16.to_be_bytes());
        body.extend((arguments.len() as u16).to_be_bytes());
        for argument in arguments {
            body.extend((argument.len() as u32).to_be_bytes());
            body.extend(argument.as_bytes());
        }
        body.extend(0u16.to_be_bytes());
        self.message(b'F', &body)
    }

    pub fn copy_data(self, data: &str) -> Batch {
        self.message(b'd', data.as_bytes())
    }

    pub fn copy_done(self) -> Batch {
        self.message(b'c', b"")
    }

    pub fn copy_fail(mut self, reason: &str) -> Batch {
        frontend::put_copy_fail(&mut self.0, reason);
        self
    }

    /// Any message; its length word is made.
    pub fn message(mut self, tag: u8, body: &[u8]) -> Batch {
        self.0.push(tag);
        self.0.extend((body.len() as u32 + 4).to_be_bytes());
        self.0.extend(body);
        self
    }

    /// Sends it all in one write.
    #[track_caller]
    pub fn to(&self, client: &mut WireClient) {
        client.send(&self.0);
    }

    /// Sends it and takes everything up to the next ReadyForQuery.
    #[track_caller]
    pub fn answer(&self, client: &mut WireClient) -> Vec<Message> {
        self.to(client);
        client.until_ready()
    }
}

/// The tags of messages, one byte each, as text.
pub fn tags(messages: &[Message]) -> String {
    messages.iter().map(|message| char::from(message.tag)).collect()
}

/// Sends the same messages to PostgreSQL itself and through the gateway, and asserts that the
/// answers up to the `ready`th ReadyForQuery are the same to the byte. Returns their tags.
#[track_caller]
pub fn answered_alike(
    direct: &mut WireClient,
    through: &mut WireClient,
    batch: &Batch,
    ready: usize,
) -> String {
    let [expected, got] = [direct, through].map(|client| {
        batch.to(client);
        (0..ready).flat_map(|_| client.until_ready()).collect::<Vec<_>>()
    });
    assert_eq!(got, expected, "through the gateway (left) and directly (right)");
    tags(&expected)
}
