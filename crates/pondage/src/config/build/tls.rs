//! TLS, as far as options have to go together.

use super::Builder;
use crate::config::options::default;
use crate::config::report::{Code, Problem};
use crate::config::settings::Scope;
use crate::config::{ServerTlsMode, TlsNegotiation, TlsVersion, TlsVersions};

impl Builder<'_> {
    pub(super) fn tls_negotiation(&mut self, scope: &Scope) -> TlsNegotiation {
        let (settings, values) = (self.settings, self.values(scope));
        let said = values.text("tls_negotiation");
        let said = said.and_then(|word| TlsNegotiation::from_name(&word));
        let mode = values.text("tls_mode").and_then(|word| ServerTlsMode::from_name(&word));
        let weak = [ServerTlsMode::Disable, ServerTlsMode::Prefer]
            .contains(&mode.unwrap_or(default::SERVER_TLS_MODE));
        if let (Some(TlsNegotiation::Direct), true, Some(given)) =
            (said, weak, settings.get(scope, "tls_negotiation"))
        {
            // libpq refuses it, too: a server without TLS can't say so.
            let message =
                "`tls_negotiation = \"direct\"` leaves no way back to a connection without TLS";
            let problem = Problem::new(Code::Contradiction, message)
                .help("set `tls_mode` to \"require\", \"verify-ca\" or \"verify-full\"");
            self.complain(given, problem);
        }
        said.unwrap_or(default::TLS_NEGOTIATION)
    }

    pub(super) fn tls_versions(
        &mut self,
        scope: &Scope,
        least: &'static str,
        most: &'static str,
    ) -> TlsVersions {
        let (settings, values) = (self.settings, self.values(scope));
        let said = |name| values.text(name).and_then(|word| TlsVersion::from_name(&word));
        let mut versions = TlsVersions::default();
        versions.least = said(least).unwrap_or(versions.least);
        versions.most = said(most).unwrap_or(versions.most);
        if versions.least > versions.most {
            let given = settings.get(scope, least).or_else(|| settings.get(scope, most));
            if let Some(given) = given {
                let message = format!("`{least}` is newer than `{most}`");
                self.complain(given, Problem::new(Code::Contradiction, message));
            }
        }
        versions
    }
}
