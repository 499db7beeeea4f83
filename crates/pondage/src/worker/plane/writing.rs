//! How statements that share a server are written to it.

use backend::reply::{Fate, Guest, Kind, Made, Owner, Request};
use backend::server::Unnamed as OnServer;
use wire::pg::frontend::{self, Target};

use super::Plane;
use crate::route::Way;
use crate::session::unit::{extended, Form, Unit};

impl Plane {
    pub(super) fn end_batch(&mut self, server: u32) {
        let sync = Request::with_fate(Owner::NOBODY, Kind::Sync, Fate::Hide);
        self.send(server, sync, frontend::put_sync);
    }

    /// Writes one statement. `open`: a batch without its Sync is before it. Whether one is behind.
    pub(super) fn write_unit(&mut self, server: u32, slot: u32, unit: &Unit, open: bool) -> bool {
        let owner = Owner(slot);
        let guest = if unit.held { Guest::Hurried } else { Guest::Plain };
        let repeats = unit.retries > 0;
        let shares = unit.way == Way::Batch && unit.form != Form::Query;
        if open && !shares {
            self.end_batch(server);
        }
        match unit.form {
            Form::Query => {
                let request = Request::forward(owner, Kind::Query).guest(guest).repeating(repeats);
                self.send(server, request, |out| {
                    out.extend_from_slice(&unit.bytes);
                });
                return false;
            }
            Form::StandIn { values } => self.write_stand_in(server, owner, unit, values),
            Form::Extended => self.write_extended(server, slot, unit),
        }
        if shares {
            let part = Fate::Made(Made::ReadyForQuery);
            self.send(server, Request::with_fate(owner, Kind::Part, part), |_| {});
        } else {
            let sync = Request::forward(owner, Kind::Sync);
            let sync = match unit.way {
                // A commit may fail.
                Way::Train => sync.guest(guest).repeating(repeats),
                _ => sync,
            };
            self.send(server, sync, frontend::put_sync);
        }
        shares
    }

    fn write_stand_in(&mut self, server: u32, owner: Owner, unit: &Unit, values: u32) {
        let Some(statement) = &unit.statement else { return };
        let guest = Guest::StandIn;
        self.prepare_on(server, statement, owner, guest);
        let values = &unit.bytes[values as usize..];
        let bind = Request::with_fate(owner, Kind::Bind, Fate::HideSuccess).guest(guest);
        self.send(server, bind, |out| {
            frontend::put_bind_head(out, values.len(), b"", statement.name().as_bytes());
            out.extend_from_slice(values);
        });
        self.send(server, Request::forward(owner, Kind::Describe).guest(guest), |out| {
            frontend::put_describe(out, Target::Portal, b"");
        });
        self.send(server, Request::forward(owner, Kind::Execute).guest(guest), |out| {
            frontend::put_execute(out, b"", 0);
        });
    }

    fn write_extended(&mut self, server: u32, slot: u32, unit: &Unit) {
        let Some(asked) = extended(&unit.bytes) else { return };
        let owner = Owner(slot);
        // A named statement takes the place of the client's unnamed one.
        let stands_in = asked.parse.is_some() && unit.statement.is_some();
        let guest = match unit.way {
            _ if unit.held => Guest::Hurried,
            _ if stands_in => Guest::StandIn,
            _ => Guest::Plain,
        };
        let repeats = unit.retries > 0;
        let request = |kind| Request::forward(owner, kind).guest(guest).repeating(repeats);
        match (&asked.parse, &unit.statement) {
            (Some(parse), None) => {
                self.next_stamp += 1;
                let stamp = self.next_stamp;
                self.servers[server].server.set_unnamed(OnServer::Of(stamp));
                self.send(server, request(Kind::Parse).telling(true), |out| {
                    frontend::put_parse(out, b"", parse.query, parse.types);
                });
            }
            (_, Some(statement)) => self.prepare_on(server, statement, owner, guest),
            (None, None) => {}
        }
        let name = unit.statement.as_ref().map(|statement| statement.name());
        let bind = match (stands_in, &unit.statement) {
            (true, _) => Request::with_fate(owner, Kind::Bind, Fate::HideSuccess).guest(guest),
            (false, Some(statement)) => request(Kind::Bind).of(statement.id).replanning(
                !unit.held && self.may_repeat(slot, asked.bind.statement, &unit.bytes, statement),
            ),
            (false, None) => request(Kind::Bind),
        };
        self.send(server, bind, |out| {
            let name = name.as_ref().map_or(&b""[..], |name| name.as_bytes());
            frontend::put_bind_head(out, asked.values.len(), b"", name);
            out.extend_from_slice(asked.values);
        });
        if stands_in {
            // The client hears nothing before it is certain that the shared one will do.
            for made in [Made::ParseComplete, Made::BindComplete] {
                let request = Request::with_fate(owner, Kind::Bind, Fate::Made(made));
                self.send(server, request, |_| {});
            }
        }
        if asked.describe {
            self.send(server, request(Kind::Describe), |out| {
                frontend::put_describe(out, Target::Portal, b"");
            });
        }
        self.send(server, request(Kind::Execute), |out| frontend::put_execute(out, b"", 0));
    }
}
