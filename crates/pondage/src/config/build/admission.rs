//! `hba_file`, `ident_file`, and the methods that need more than a secret.

use std::sync::Arc;

use super::Builder;
use crate::config::options::Section;
use crate::config::report::{Code, Place, Problem};
use crate::config::settings::{Scope, Setting};
use crate::config::value::Value;
use crate::config::{Address, AuthMethod, Listen, ListenTlsMode};
use crate::hba::{Fault, Maps, Rules};

impl Builder<'_> {
    /// Whether the method of logging in looks at certificates that clients need not show.
    pub(super) fn may_ask_for_certificates(&self) -> bool {
        let method = self.settings.value(&Scope::fixed(Section::Auth), "method");
        let method = match method {
            Some(Value::Text(word)) => AuthMethod::from_name(word),
            _ => None,
        };
        matches!(method, Some(AuthMethod::Cert | AuthMethod::Hba))
    }

    /// The rules of `hba_file`, the maps of `ident_file`, and the map of `cert` and `peer`.
    pub(super) fn admission(
        &mut self,
        method: AuthMethod,
        listen: &Listen,
    ) -> (Option<Arc<Rules>>, Arc<Maps>, Option<String>) {
        let scope = Scope::fixed(Section::Auth);
        let settings = self.settings;
        let ident_map = self.values(&scope).text("ident_map");
        let maps = match self.file_of("ident_file", Code::BadIdentLine, Maps::read) {
            None => Maps::default(),
            Some(maps) => {
                let missing = ident_map.as_ref().filter(|map| !maps.has(map));
                if let (Some(map), Some(given)) = (missing, settings.get(&scope, "ident_map")) {
                    let message = format!("`ident_file` has no map \"{map}\"");
                    self.complain(given, Problem::new(Code::BadValue, message));
                }
                maps
            }
        };
        if let (Some(given), false) =
            (settings.get(&scope, "ident_map"), settings.has(&scope, "ident_file"))
        {
            let message = "`ident_map` needs `ident_file`";
            self.complain(given, Problem::new(Code::MissingValue, message));
        }
        let said = settings.get(&scope, "method");
        match (method, said) {
            (AuthMethod::Cert, Some(said)) => self.check_cert(said, listen),
            (AuthMethod::Peer, Some(said)) => self.check_peer(said, listen),
            _ => {}
        }
        (self.rules(method, listen), Arc::new(maps), ident_map)
    }

    fn rules(&mut self, method: AuthMethod, listen: &Listen) -> Option<Arc<Rules>> {
        let scope = Scope::fixed(Section::Auth);
        let settings = self.settings;
        let given = settings.get(&scope, "hba_file");
        match (method, settings.get(&scope, "method"), given) {
            (AuthMethod::Hba, Some(said), None) if !settings.has(&scope, "hba_file") => {
                let message = "method `hba` needs `hba_file`";
                self.complain(said, Problem::new(Code::MissingValue, message));
            }
            (AuthMethod::Hba, _, _) => {}
            // Whoever wrote the file thinks that it counts.
            (_, _, Some(given)) => {
                let message = format!("`hba_file` is not used with method `{}`", method.name());
                let problem = Problem::new(Code::Contradiction, message)
                    .help("set `method = \"hba\"` in `[auth]`");
                self.complain(given, problem);
                return None;
            }
            _ => return None,
        }
        let rules = self.file_of("hba_file", Code::BadHbaLine, Rules::read)?;
        if let (Some(rule), false) = (rules.needs_certificates(), asks_for_certificates(listen)) {
            let message = "clients can't show certificates: `[listen.tls]` has no `client_ca`";
            let problem = Problem::new(Code::MissingValue, message).at(Place::File {
                file: rule.place.file.clone(),
                line: rule.place.line,
                column: rule.place.column,
            });
            self.problems.push(problem);
        }
        let mut addresses = listen.tcp().chain(listen.redis.iter().copied());
        let reachable = addresses.find(|address| !address.ip().is_loopback());
        if let (Some(rule), Some(address)) = (rules.trusts_others(), reachable) {
            let (file, line) = (&rule.place.file, rule.place.line);
            let notice = format!(
                "{file}:{line} is trust: who comes from there to {address} may come in unasked"
            );
            self.notices.push(notice);
        }
        Some(Arc::new(rules))
    }

    /// What a file says, if there is one and it is right.
    fn file_of<T>(
        &mut self,
        name: &str,
        code: Code,
        read: impl Fn(&std::path::Path) -> Result<T, Vec<Fault>>,
    ) -> Option<T> {
        let given = self.settings.get(&Scope::fixed(Section::Auth), name)?;
        let Value::Path(path) = &given.value else { return None };
        match read(path) {
            Ok(taken) => Some(taken),
            Err(faults) => {
                self.problems.extend(faults.into_iter().map(|fault| problem(code, fault)));
                None
            }
        }
    }

    fn check_cert(&mut self, said: &Setting, listen: &Listen) {
        if !asks_for_certificates(listen) {
            let message = "method `cert` needs `client_ca` in `[listen.tls]`, with TLS";
            self.complain(said, Problem::new(Code::MissingValue, message));
        }
    }

    fn check_peer(&mut self, said: &Setting, listen: &Listen) {
        let has_socket =
            listen.postgres.iter().any(|address| matches!(address, Address::Unix { .. }));
        if !has_socket {
            let problem =
                Problem::new(Code::Contradiction, "method `peer` works on Unix sockets only")
                    .help("add one to `listen.postgres`, such as \"unix:/run/pondage\"");
            self.complain(said, problem);
        }
    }
}

fn asks_for_certificates(listen: &Listen) -> bool {
    listen.tls.mode != ListenTlsMode::Disable && listen.tls.client_ca.is_some()
}

fn problem(code: Code, fault: Fault) -> Problem {
    let Fault { place, message, help } = fault;
    let place = Place::File { file: place.file, line: place.line, column: place.column };
    let problem = Problem::new(code, message).at(place);
    match help {
        Some(help) => problem.help(help),
        None => problem,
    }
}
