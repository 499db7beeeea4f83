//! The hosts of a database.

use std::time::Duration;

use super::Builder;
use crate::config::hosts;
use crate::config::options::default;
use crate::config::report::{Code, Problem};
use crate::config::settings::Scope;
use crate::config::value::Value;
use crate::config::{Balance, Host, SessionAttrs, Several};

impl Builder<'_> {
    /// The first host with its port, and what there is beyond.
    pub(super) fn hosts(&mut self, scope: &Scope) -> (Host, u16, Several) {
        let values = self.values(scope);
        let target = values.text("target_session_attrs");
        let target = target.and_then(|word| SessionAttrs::from_name(&word)).unwrap_or_default();
        let balance = values.text("load_balance_hosts");
        let balance = balance.and_then(|word| Balance::from_name(&word)).unwrap_or_default();
        let check = values.duration("host_check_interval").unwrap_or(default::HOST_CHECK_INTERVAL);
        let split = values.flag("split_reads").unwrap_or(false);
        let (names, ports) = (values.text("host"), values.text("port"));
        let read = hosts::read(names.as_deref(), ports.as_deref());
        let mut places = read.unwrap_or_else(|problem| {
            if let Some(given) = self.settings.get(scope, "port") {
                self.complain(given, problem);
            }
            Vec::new()
        });
        if places.len() > 1 {
            self.is_not_cached(scope);
        }
        if split {
            self.can_split(scope, places.len(), target, check);
        }
        let others = places.split_off(places.len().min(1));
        let nowhere = || (Host::Tcp(default::SERVER_HOST.to_owned()), default::SERVER_PORT);
        let (host, port) = places.pop().unwrap_or_else(nowhere);
        (host, port, Several { others, target, balance, check, split, replica: None })
    }

    /// Reads are split between a primary and standbys of one list, of which is known how far they are.
    fn can_split(&mut self, scope: &Scope, hosts: usize, target: SessionAttrs, check: Duration) {
        let writes = matches!(target, SessionAttrs::Primary | SessionAttrs::ReadWrite);
        let missing = match () {
            () if hosts < 2 => "`split_reads` needs a list of hosts",
            () if !writes => "`split_reads` needs target_session_attrs to be primary or read-write",
            () if check.is_zero() => "`split_reads` needs a host_check_interval",
            () => return,
        };
        if let Some(given) = self.settings.get(scope, "split_reads") {
            self.complain(given, Problem::new(Code::Contradiction, missing));
        }
    }

    /// The cache's stream follows one server; nobody shall believe that it follows a list.
    fn is_not_cached(&mut self, scope: &Scope) {
        for name in ["cache", "caches", "mirrors"] {
            let Some(given) = self.settings.get(scope, name) else { continue };
            let nothing = match &given.value {
                Value::Text(word) => word == "off",
                Value::Names(names) => names.is_empty(),
                _ => false,
            };
            if !nothing {
                let message = format!("`{name}` asks for a cache of a database with several hosts");
                let problem = Problem::new(Code::Contradiction, message)
                    .help("name one host, or leave the cache of this database off");
                self.complain(given, problem);
            }
        }
    }
}
