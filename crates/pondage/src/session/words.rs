//! In whose words a client is told what Pondage itself refuses: the one place that knows.
//!
//! PgBouncer has a text for each and one SQLSTATE for nearly all, 08P01 (`send_pooler_error` in
//! `src/proto.c`). With `listen.errors = "pgbouncer"` a client gets these; what Pondage would say
//! comes as the detail, and its hint with its code stays.

use std::borrow::Cow;

use wire::pg::sqlstate;

use super::login::Refused;
use crate::config::Words;
use crate::console::Failure;
use crate::control::messages::OpenError;
use crate::control::open::UNREACHED;

impl Refused {
    pub fn in_words(&self, words: Words) -> Cow<'_, Refused> {
        match (&self.theirs, words) {
            (Some(theirs), Words::Pgbouncer) => Cow::Owned(Refused {
                // Drivers ask for another password then.
                code: match self.code {
                    sqlstate::INVALID_PASSWORD => sqlstate::INVALID_PASSWORD,
                    _ => sqlstate::PROTOCOL_VIOLATION,
                },
                message: theirs.clone().into_owned(),
                detail: Some(self.detail.as_ref().unwrap_or(&self.message).clone()),
                hint: self.hint.clone(),
                theirs: None,
            }),
            _ => Cow::Borrowed(self),
        }
    }
}

impl OpenError {
    /// What a server has said itself keeps its code.
    pub fn in_words(&self, words: Words) -> Cow<'_, OpenError> {
        if words == Words::Pondage {
            return Cow::Borrowed(self);
        }
        let code = match self.code.as_str() {
            UNREACHED => sqlstate::PROTOCOL_VIOLATION.to_owned(),
            code => code.to_owned(),
        };
        let detail = Some(self.detail.as_ref().unwrap_or(&self.message).clone());
        Cow::Owned(OpenError { code, message: self.theirs.clone(), detail, ..self.clone() })
    }
}

impl Failure {
    /// Most texts of the console are PgBouncer's in any case.
    pub fn in_words(self, words: Words) -> Failure {
        match (words, self.code) {
            (Words::Pondage, _) => self,
            (Words::Pgbouncer, sqlstate::CONFIG_FILE_ERROR) => {
                let message = "RELOAD failed, see logs for additional details".to_owned();
                Failure { message, ..self }
            }
            (Words::Pgbouncer, _) => Failure { code: sqlstate::PROTOCOL_VIOLATION, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pgbouncers_words_come_with_ours_behind_them() {
        let refused = Refused::new(sqlstate::TOO_MANY_CONNECTIONS, "sorry")
            .hint("Raise it. [P0312]")
            .theirs("no more connections allowed (max_client_conn)");
        assert_eq!(*refused.in_words(Words::Pondage), refused);
        let told = refused.in_words(Words::Pgbouncer);
        assert_eq!(
            (told.code, told.message.as_str()),
            ("08P01", "no more connections allowed (max_client_conn)")
        );
        assert_eq!(told.detail.as_deref(), Some("sorry"));
        assert_eq!(told.hint, refused.hint);

        let plain = Refused::new(sqlstate::FEATURE_NOT_SUPPORTED, "nothing of theirs");
        assert_eq!(*plain.in_words(Words::Pgbouncer), plain);
    }

    #[test]
    fn what_a_server_has_said_keeps_its_code() {
        let error = OpenError {
            code: "28P01".to_owned(),
            message: "cannot log in: wrong".to_owned(),
            theirs: "wrong".to_owned(),
            detail: None,
            hint: None,
            permanent: true,
            at: std::time::SystemTime::UNIX_EPOCH,
        };
        let told = error.in_words(Words::Pgbouncer);
        assert_eq!((told.code.as_str(), told.message.as_str()), ("28P01", "wrong"));
        let unreached = OpenError { code: UNREACHED.to_owned(), ..error };
        assert_eq!(unreached.in_words(Words::Pgbouncer).code, "08P01");
        assert_eq!(unreached.in_words(Words::Pondage).code, UNREACHED);
    }

    #[test]
    fn the_console_has_one_code_but_for_reload() {
        let of = |code| Failure::new(code, "no").in_words(Words::Pgbouncer);
        assert_eq!(of(sqlstate::SYNTAX_ERROR).code, "08P01");
        let reload = of(sqlstate::CONFIG_FILE_ERROR);
        assert_eq!(reload.code, "F0000");
        assert!(reload.message.starts_with("RELOAD failed, see logs"));
    }
}
