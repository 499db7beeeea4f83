//! Doors for clients of proxies.

use std::net::SocketAddr;

use super::Builder;
use crate::config::report::{Code, Problem};
use crate::config::settings::Scope;
use crate::config::{Address, Value};
use crate::hba::Net;

impl Builder<'_> {
    /// The addresses, and where the proxies are.
    pub(super) fn proxied(
        &mut self,
        scope: &Scope,
        postgres: &[Address],
        http: Option<SocketAddr>,
    ) -> (Vec<SocketAddr>, Vec<Net>) {
        let (settings, values) = (self.settings, self.values(scope));
        let proxied = match values.value("proxied") {
            Some(Value::SocketAddresses(addresses)) => addresses.clone(),
            _ => Vec::new(),
        };
        let proxies: Vec<Net> =
            values.names("proxies").iter().filter_map(|text| Net::parse(text)).collect();
        if let Some(given) = settings.get(scope, "proxied") {
            let other = |address: &SocketAddr| match http == Some(*address) {
                true => Some("http"),
                false => postgres.contains(&Address::Tcp(*address)).then_some("postgres"),
            };
            let twice = proxied.iter().find_map(|address| Some((address, other(address)?)));
            if let Some((address, other)) = twice {
                let message = format!("`proxied` and `{other}` both listen on {address}");
                self.complain(given, Problem::new(Code::DuplicateAddress, message));
            }
            if !proxied.is_empty() && proxies.is_empty() && !settings.has(scope, "proxies") {
                let message = "`proxied` needs `proxies`: whose word counts?";
                let problem = Problem::new(Code::MissingValue, message)
                    .help("list where the proxies are, such as `proxies = [\"10.0.0.0/8\"]`");
                self.complain(given, problem);
            }
        }
        (proxied, proxies)
    }
}
