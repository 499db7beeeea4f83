//! Where sampled statements are told.

use std::sync::Arc;

use super::Builder;
use crate::config::options::default;
use crate::config::otlp::{headers, Otlp};
use crate::config::report::{Code, Problem};
use crate::config::settings::Scope;

impl Builder<'_> {
    pub(super) fn otlp(&mut self, scope: &Scope) -> Option<Arc<Otlp>> {
        let settings = self.settings;
        let values = self.values(scope);
        let url = values.text("otlp_endpoint")?;
        let timeout = values.duration("otlp_timeout").unwrap_or(default::OTLP_TIMEOUT);
        let one_in = values.count("trace_one_in").unwrap_or(default::TRACE_ONE_IN);
        let said = values.secret("otlp_headers").unwrap_or_default();
        let mut otlp = match Otlp::at(&url) {
            Ok(otlp) => Otlp { timeout, one_in, ..otlp },
            Err(why) => {
                let given = settings.get(scope, "otlp_endpoint")?;
                let problem = Problem::new(Code::BadUrl, format!("`otlp_endpoint`: {why}"))
                    .help("such as \"http://127.0.0.1:4318\"");
                self.complain(given, problem);
                return None;
            }
        };
        match headers(&said) {
            Some(headers) => otlp.headers = headers,
            None => {
                let given = settings.get(scope, "otlp_headers")?;
                let problem = Problem::new(Code::BadValue, "`otlp_headers` can't be read")
                    .help("such as \"api-key=…,x-tenant=7\"; `%2C` is a comma in a value");
                self.complain(given, problem);
            }
        }
        Some(Arc::new(otlp))
    }
}
