//! `[procedures."schema.name"]`.

use std::collections::BTreeMap;

use super::Builder;
use crate::config::options::Section;
use crate::config::report::{Code, Problem};
use crate::config::value::{is_name, quoted};
use crate::config::{DurableAck, ProcedureMode, ProcedureOptions};

impl Builder<'_> {
    pub(super) fn procedures(&mut self) -> BTreeMap<String, ProcedureOptions> {
        let settings = self.settings;
        let mut procedures = BTreeMap::new();
        for (scope, named) in settings.of(Section::Procedure) {
            let name = &scope.database;
            let parts = name.split_once('.');
            let wrong = match parts {
                None => Some(format!("the procedure {} has no schema", quoted(name))),
                Some((schema, own)) if !is_name(schema) || !is_name(own) => {
                    Some(format!("{} can't be the name of a procedure", quoted(name)))
                }
                Some(_) => None,
            };
            if let Some(message) = wrong {
                let own = if is_name(name) && parts.is_none() { name } else { "payment" };
                let problem = Problem::new(Code::BadName, message)
                    .help(format!("write `[procedures.\"public.{own}\"]`"));
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
            let given = settings.get(scope, "also").or(settings.get(scope, "key"));
            if let (Err(problem), Some(given)) = (options.check(), given) {
                self.complain(given, Problem::new(Code::Contradiction, problem));
            }
            procedures.insert(name.clone(), options);
        }
        procedures
    }
}
