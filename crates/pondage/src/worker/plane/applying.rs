//! A server gets the settings of the client that it is lent to: only what differs, in one write.

use backend::reply::{Fate, Kind, Owner, Request};
use backend::server::Unnamed;
use backend::settings::{Change, Settings};
use wire::pg::frontend::{self, Target};

use super::login::parameter_statuses;
use super::{Plane, Preparing};
use crate::session::client::Hold;

/// Who the session acts for. It comes last, because it decides what may be set, and goes first.
const IDENTITY: [&str; 2] = ["session_authorization", "role"];

/// What has to be run, in this order.
#[derive(Debug, PartialEq, Eq)]
struct Steps<'a> {
    resets: Vec<String>,
    sets: Vec<(&'a str, &'a str)>,
}

impl Plane {
    /// Applies the client's settings, if the server has others. The client is held until then.
    pub(super) fn apply_settings(&mut self, slot: u32, server: u32) {
        let (Some(client), Some(conn)) = (self.clients.get(slot), self.servers.get_mut(server))
        else {
            return;
        };
        let wanted = client.settings.clone();
        let have = conn.server.settings.clone();
        let steps = steps(&have, &wanted, &conn.server.defaults);
        if steps.resets.is_empty() && steps.sets.is_empty() {
            return;
        }
        conn.preparing = Preparing::Applying;
        self.clients[slot].hold = Hold::SetUp;
        let setup = |kind| Request::with_fate(Owner(slot), kind, Fate::Setup);
        let (query, values) = set_config(&steps.sets);
        let texts = steps.resets.iter().map(|reset| (reset.as_str(), &[][..]));
        let sets = (!values.is_empty()).then_some((query.as_str(), &values[..]));
        for (text, values) in texts.chain(sets) {
            self.send(server, setup(Kind::Parse), |out| {
                frontend::put_parse(out, b"", text.as_bytes(), &[0, 0]);
            });
            self.send(server, setup(Kind::Bind), |out| frontend::put_bind(out, b"", b"", values));
            self.send(server, setup(Kind::Execute), |out| frontend::put_execute(out, b"", 0));
        }
        // The client must not find it under the empty name.
        self.servers[server].server.set_unnamed(Unnamed::Nothing);
        self.send(server, setup(Kind::Close), |out| {
            frontend::put_close(out, Target::Statement, b"");
        });
        self.send(server, setup(Kind::Sync), frontend::put_sync);
    }

    /// The settings were applied. What the server reports of them is how they are spelled from now
    /// on ("ISO" became "ISO, MDY"), so that the next server is not told again.
    pub(super) fn unify_settings(&mut self, slot: u32, server: u32) {
        let (client, conn) = (&mut self.clients[slot], &mut self.servers[server]);
        let reported = conn.server.settings.restricted_to(&conn.server.defaults);
        // RESET goes back to that spelling, too.
        if let Some(start) = &client.start {
            let spelled = |(name, value)| {
                let is_set = client.settings.get(name) == Some(value);
                let now = reported.get(name).filter(|now| is_set && *now != value)?;
                Some((name, now))
            };
            let spelled: Vec<_> = start.iter().filter_map(spelled).collect();
            if !spelled.is_empty() {
                client.start = Some(self.settings.intern(start.overlaid(spelled)));
            }
        }
        let more = client.settings.iter().filter(|(name, _)| reported.get(name).is_none());
        let both = self.settings.intern(reported.overlaid(more));
        conn.server.settings = both.clone();
        client.settings = both;
    }

    /// RESET went back to what the session was started with, which is the server's own. What the
    /// client has come with is its own again from the next server on. `set`: what is set now.
    pub(super) fn come_back(&mut self, slot: u32, server: u32, set: &[&str]) {
        let (client, conn) = (&self.clients[slot], &self.servers[server]);
        let Some(start) = client.start.clone() else { return };
        let back = came_back(&start, &client.settings, set);
        if back.is_empty() {
            return;
        }
        let settings = client.settings.overlaid(back.iter().copied());
        // One that keeps its server has the server's, until that is over.
        if conn.pinned.is_none() {
            let back = Settings::default().overlaid(back);
            // By the names that PostgreSQL has for them.
            let told = settings.restricted_to(&back).restricted_to(&conn.server.defaults);
            self.tell(slot, |out| out.extend_from_slice(&parameter_statuses(&told)));
        }
        self.clients[slot].settings = self.settings.intern(settings);
    }
}

/// What of `start` was reset: it was set when the server was lent, and is not any more. A name with
/// a dot is none: one that is reset and one that is set to nothing are alike.
fn came_back<'a>(start: &'a Settings, now: &Settings, set: &[&str]) -> Vec<(&'a str, &'a str)> {
    let is_set = |name: &str| set.iter().any(|known| known.eq_ignore_ascii_case(name));
    let came = |(name, value): &(&str, &str)| {
        !name.contains('.') && !is_identity(name) && now.get(name) != Some(*value) && !is_set(name)
    };
    start.iter().filter(came).collect()
}

fn is_identity(name: &str) -> bool {
    IDENTITY.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// What turns a server with the settings `have` into one with `wanted`.
fn steps<'a>(have: &'a Settings, wanted: &'a Settings, defaults: &Settings) -> Steps<'a> {
    let changes = have.changes_to(wanted);
    let mut steps = Steps { resets: Vec::new(), sets: Vec::new() };
    if changes.is_empty() {
        return steps;
    }
    let acts =
        |settings: &Settings| IDENTITY.iter().any(|name| settings.get(name) != defaults.get(name));
    if acts(have) {
        steps.resets.extend(["RESET SESSION AUTHORIZATION".to_owned(), "RESET ROLE".to_owned()]);
    }
    for change in changes {
        match change {
            Change::Reset { name } if !is_identity(name) => {
                // In quotes, because a part of a name may be a reserved word.
                steps.resets.push(format!("RESET \"{}\"", name.replace('.', "\".\"")));
            }
            Change::Set { name, value } if !is_identity(name) => steps.sets.push((name, value)),
            Change::Reset { .. } | Change::Set { .. } => {}
        }
    }
    for name in IDENTITY {
        let value = wanted.get(name).filter(|value| defaults.get(name) != Some(*value));
        steps.sets.extend(value.map(|value| (name, value)));
    }
    steps
}

/// One SELECT that sets every value, each as a parameter: a client's value is never pasted.
fn set_config<'a>(sets: &[(&'a str, &'a str)]) -> (String, Vec<Option<&'a [u8]>>) {
    let mut query = String::from("SELECT ");
    let mut values = Vec::new();
    for (name, value) in sets {
        let comma = if values.is_empty() { "" } else { ", " };
        let at = values.len();
        query.push_str(&format!("{comma}pg_catalog.set_config(${}, ${}, false)", at + 1, at + 2));
        values.extend([Some(name.as_bytes()), Some(value.as_bytes())]);
    }
    (query, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().copied().collect()
    }

    #[test]
    fn who_acts_is_reset_first_and_set_last() {
        let defaults = of(&[("session_authorization", "app"), ("TimeZone", "UTC")]);
        let bob = defaults.overlaid([("role", "bob"), ("work_mem", "1MB")]);
        let eve = defaults.overlaid([("session_authorization", "eve"), ("app.user", "7")]);
        assert_eq!(
            steps(&bob, &eve, &defaults),
            Steps {
                resets: vec![
                    "RESET SESSION AUTHORIZATION".into(),
                    "RESET ROLE".into(),
                    "RESET \"work_mem\"".into()
                ],
                sets: vec![("app.user", "7"), ("session_authorization", "eve")],
            }
        );
        // What a role may not set has to be set before it.
        let more = bob.overlaid([("log_statement", "all")]);
        assert_eq!(steps(&bob, &more, &defaults).sets, [("log_statement", "all"), ("role", "bob")]);
        assert_eq!(steps(&defaults, &bob, &defaults).resets, [""; 0]);
        assert_eq!(steps(&bob, &bob, &defaults), Steps { resets: vec![], sets: vec![] });
    }

    #[test]
    fn only_what_was_reset_comes_back() {
        let start = of(&[("DateStyle", "German"), ("work_mem", "8MB"), ("a.b", "1")]);
        // Of what is not reported only what is set is known.
        let now = of(&[("DateStyle", "ISO, MDY")]);
        let back = |set: &[&str]| came_back(&start, &now, set);
        assert_eq!(back(&[]), [("DateStyle", "German"), ("work_mem", "8MB")]);
        assert_eq!(back(&["datestyle"]), [("work_mem", "8MB")]);
        assert_eq!(came_back(&start, &start, &[]), []);
    }

    #[test]
    fn values_are_parameters() {
        let (query, values) = set_config(&[("a", "'; x"), ("b.c", "")]);
        let set = "pg_catalog.set_config";
        assert_eq!(query, format!("SELECT {set}($1, $2, false), {set}($3, $4, false)"));
        assert_eq!(values, [Some(&b"a"[..]), Some(b"'; x"), Some(b"b.c"), Some(b"")]);
    }
}
