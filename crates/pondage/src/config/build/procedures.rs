//! `[procedures."schema.name"]`.

use std::collections::BTreeMap;

use super::Builder;
use crate::config::options::Section;
use crate::config::report::{Code, Problem};
use crate::config::value::quoted;
use crate::config::{DurableAck, ProcedureMode, ProcedureOptions};

impl Builder<'_> {
    pub(super) fn procedures(&mut self) -> BTreeMap<String, ProcedureOptions> {
        let settings = self.settings;
        let mut procedures = BTreeMap::new();
        for (scope, named) in settings.of(Section::Procedure) {
            let name = &scope.database;
            if !name.contains('.') {
                let message = format!("{} has no schema", quoted(name));
                let problem = Problem::new(Code::WrongType, message)
                    .help(format!("write `[procedures.\"public.{name}\"]`"));
                self.complain_at(named.place.as_ref(), problem);
            }
            let values = self.values(scope);
            let options = ProcedureOptions {
                key: values.names("key"),
                also: values.names("also"),
                mode: values.text("mode").and_then(|word| ProcedureMode::from_name(&word)),
                durable_ack: values
                    .text("durable_ack")
                    .and_then(|word| DurableAck::from_name(&word)),
                max_train: values.count("max_train"),
                retry: values.count("retry"),
            };
            if let (Err(problem), Some(given)) = (options.check(), settings.get(scope, "also")) {
                self.complain(given, Problem::new(Code::Contradiction, problem));
            }
            procedures.insert(name.clone(), options);
        }
        procedures
    }
}
