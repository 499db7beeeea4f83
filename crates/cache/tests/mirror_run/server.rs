//! Statements with values in any format, and answers as they come.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use cache::mirror::output::Format;
use wire::pg::{backend, frame, frontend};

use crate::kit::log_in;
use crate::statement::Statement;

pub struct Server {
    socket: UnixStream,
    input: Vec<u8>,
}

#[derive(Debug)]
pub enum Answer {
    /// The bodies of DataRows, and the tag at the end.
    Rows {
        rows: Vec<Vec<u8>>,
        tag: String,
    },
    Failed(String),
}

impl Server {
    pub fn open() -> Server {
        let mut server = Server { socket: log_in("postgres"), input: Vec::new() };
        for (name, value) in ::backend::replication::SETTINGS {
            if name != "application_name" && name != "search_path" {
                server.text(&format!("SET {name} = '{}'", value.replace('\'', "''")));
            }
        }
        server
    }

    /// Runs one statement that has no values, and gives its rows as text.
    #[track_caller]
    pub fn text(&mut self, sql: &str) -> Vec<Vec<Option<String>>> {
        let mut out = Vec::new();
        frontend::put_query(&mut out, sql);
        match self.ask(&out) {
            Answer::Failed(why) => panic!("{sql}: {why}"),
            Answer::Rows { rows, .. } => {
                let text = |field: Option<Vec<u8>>| {
                    field.map(|field| String::from_utf8(field).expect("UTF-8"))
                };
                rows.iter().map(|row| fields(row).into_iter().map(text).collect()).collect()
            }
        }
    }

    pub fn run(&mut self, sql: &str, statement: &Statement, formats: &[Format]) -> Answer {
        let mut types = (statement.parameters.len() as u16).to_be_bytes().to_vec();
        let mut values = types.clone();
        let mut kinds = types.clone();
        for parameter in &statement.parameters {
            types.extend(parameter.type_oid.to_be_bytes());
            kinds.extend(u16::from(parameter.binary).to_be_bytes());
            match &parameter.value {
                None => values.extend((-1i32).to_be_bytes()),
                Some(value) => {
                    values.extend((value.len() as u32).to_be_bytes());
                    values.extend(value);
                }
            }
        }
        let mut rest = kinds;
        rest.extend(values);
        rest.extend((formats.len() as u16).to_be_bytes());
        for format in formats {
            rest.extend(u16::from(*format == Format::Binary).to_be_bytes());
        }
        let mut out = Vec::new();
        frontend::put_parse(&mut out, b"", sql.as_bytes(), &types);
        frontend::put_bind_head(&mut out, rest.len(), b"", b"");
        out.extend(rest);
        frontend::put_execute(&mut out, b"", 0);
        frontend::put_sync(&mut out);
        self.ask(&out)
    }

    fn ask(&mut self, out: &[u8]) -> Answer {
        self.socket.write_all(out).expect("sent");
        let mut failed = None;
        let (mut rows, mut tag) = (Vec::new(), String::new());
        loop {
            while let Some(head) = frame::header(&self.input).expect("a header") {
                if self.input.len() < head.total {
                    break;
                }
                let message: Vec<u8> = self.input.drain(..head.total).collect();
                let body = message[5..].to_vec();
                match head.tag {
                    backend::tag::ERROR => failed = Some(body.escape_ascii().to_string()),
                    backend::tag::DATA_ROW => rows.push(body),
                    backend::tag::COMMAND_COMPLETE => tag = ended(&body),
                    backend::tag::READY_FOR_QUERY => {
                        return match failed {
                            Some(why) => Answer::Failed(why),
                            None => Answer::Rows { rows, tag },
                        };
                    }
                    _ => {}
                }
            }
            let mut some = [0; 65_536];
            let read = self.socket.read(&mut some).expect("an answer");
            assert!(read > 0, "the server has gone");
            self.input.extend_from_slice(&some[..read]);
        }
    }
}

fn ended(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len() - 1]).into_owned()
}

/// The bodies of DataRows, and the tag at the end.
pub fn rows(mut bytes: &[u8]) -> (Vec<Vec<u8>>, String) {
    let mut rows = Vec::new();
    loop {
        let head = frame::header(bytes).expect("a header").expect("all of it");
        let (message, rest) = bytes.split_at(head.total);
        bytes = rest;
        match head.tag {
            backend::tag::DATA_ROW => rows.push(message[5..].to_vec()),
            backend::tag::COMMAND_COMPLETE => {
                assert!(rest.is_empty());
                return (rows, ended(&message[5..]));
            }
            tag => panic!("a message {}", char::from(tag)),
        }
    }
}

/// Of a DataRow's body.
pub fn fields(row: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut fields = Vec::new();
    let mut rest = &row[2..];
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        match usize::try_from(i32::from_be_bytes(*length)) {
            Err(_) => {
                fields.push(None);
                rest = after;
            }
            Ok(length) => {
                fields.push(Some(after[..length].to_vec()));
                rest = &after[length..];
            }
        }
    }
    fields
}
