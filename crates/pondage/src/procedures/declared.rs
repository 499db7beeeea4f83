//! What people say of a procedure: in its comment, in the configuration, on the console.
//!
//! ```text
//! COMMENT ON PROCEDURE payment IS 'Pays. @pondage key=p_w also=p_cw'
//! [procedures."public.payment"]     key = ["p_w"]
//! SET PROCEDURE payment KEY (p_w) ALSO (p_cw)
//! ```
//!
//! The last two go before the first, and the console before the file; each says only what it says.

use crate::config::options::{default, limit};
use crate::config::{DurableAck, ProcedureMode, ProcedureOptions};

/// What a comment has in front of what it says to Pondage.
const MARK: &str = "@pondage";

/// Parameters of a key.
pub const KEY_MAX: usize = 8;

impl ProcedureOptions {
    /// What a comment says: behind `@pondage`, up to the end of its line, pairs like `key=p_w,p_d`.
    /// None: nothing.
    ///
    /// # Errors
    /// What is not understood, in words for people.
    pub fn of_comment(comment: &str) -> Result<Option<ProcedureOptions>, String> {
        let Some((_, said)) = comment.split_once(MARK) else { return Ok(None) };
        let mut options = ProcedureOptions::default();
        for pair in said.lines().next().unwrap_or_default().split_whitespace() {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| format!("`{pair}` is no pair such as `key=p_w`"))?;
            options.set(name, value)?;
        }
        options.check()?;
        Ok(Some(options))
    }

    /// Sets one of them, as a word.
    ///
    /// # Errors
    /// There is no such option, or no such value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = |expected: &str| format!("`{name}` is `{value}`; expected {expected}");
        let names = || value.split(',').filter(|name| !name.is_empty()).map(str::to_owned);
        let count = |least, most| {
            let number = value.parse().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| wrong(&format!("a number from {least} to {most}")))
        };
        match name {
            "key" => self.key = names().collect(),
            "also" => self.also = names().collect(),
            "mode" => {
                let mode = ProcedureMode::from_name(value);
                let words = || wrong(&format!("one of {}", ProcedureMode::WORDS.join(", ")));
                self.mode = Some(mode.ok_or_else(words)?);
            }
            "durable_ack" => {
                let words = || wrong(&format!("one of {}", DurableAck::WORDS.join(", ")));
                self.durable_ack = Some(DurableAck::from_name(value).ok_or_else(words)?);
            }
            "max_train" => self.max_train = Some(count(1, limit::TRAIN)?),
            "retry" => self.retry = Some(count(0, limit::RETRY)?),
            _ => {
                let known = "key, also, mode, durable_ack, max_train and retry";
                return Err(format!("`{name}` is no option; there are {known}"));
            }
        }
        Ok(())
    }

    /// With what a weaker source says where this one says nothing. A key goes with its `also`.
    #[must_use]
    pub fn over(self, weaker: &ProcedureOptions) -> ProcedureOptions {
        let (key, also) = match self.key.is_empty() {
            true => (weaker.key.clone(), weaker.also.clone()),
            false => (self.key, self.also),
        };
        ProcedureOptions {
            key,
            also,
            mode: self.mode.or(weaker.mode),
            durable_ack: self.durable_ack.or(weaker.durable_ack),
            max_train: self.max_train.or(weaker.max_train),
            retry: self.retry.or(weaker.retry),
        }
    }

    /// Whether `also` names rows of the kind of `key`.
    ///
    /// # Errors
    /// Why not, in words for people.
    pub fn check(&self) -> Result<(), String> {
        if self.key.len() > KEY_MAX || self.also.len() > KEY_MAX {
            return Err(format!("a key has at most {KEY_MAX} parameters"));
        }
        match (self.key.len(), self.also.len()) {
            (_, 0) => Ok(()),
            (0, _) => Err("`also` needs a `key`".to_owned()),
            (key, also) if also % key == 0 => Ok(()),
            (key, _) => Err(format!("`also` needs {key} parameters, as `key` has, or a multiple")),
        }
    }

    pub fn mode(&self) -> ProcedureMode {
        self.mode.unwrap_or(default::PROCEDURE_MODE)
    }

    pub fn durable_ack(&self) -> DurableAck {
        self.durable_ack.unwrap_or(default::DURABLE_ACK)
    }

    pub fn max_train(&self) -> usize {
        self.max_train.unwrap_or(default::MAX_TRAIN) as usize
    }

    pub fn retry(&self) -> u32 {
        self.retry.unwrap_or(default::PROCEDURE_RETRY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_comment_may_say_how_calls_travel() {
        let said = |comment: &str| ProcedureOptions::of_comment(comment).expect(comment);
        assert_eq!(said("Pays an order."), None);
        let options = said("Pays.\n@pondage key=p_w,p_d also=p_cw,p_cd mode=lane\nOf the shop.");
        let expected = ProcedureOptions {
            key: names(&["p_w", "p_d"]),
            also: names(&["p_cw", "p_cd"]),
            mode: Some(ProcedureMode::Lane),
            ..ProcedureOptions::default()
        };
        assert_eq!(options, Some(expected));
        let options = said("@pondage durable_ack=each max_train=8 retry=0").expect("options");
        assert_eq!(options.durable_ack(), DurableAck::Each);
        assert_eq!((options.max_train(), options.retry()), (8, 0));
        assert_eq!(options.mode(), ProcedureMode::Train, "what is declared travels");
    }

    #[test]
    fn what_is_wrong_in_a_comment_is_said() {
        for (comment, complaint) in [
            ("@pondage key", "`key` is no pair"),
            ("@pondage keys=a", "`keys` is no option"),
            ("@pondage mode=fast", "expected one of off, lane, train, batch"),
            ("@pondage durable_ack=no", "expected one of tail, each"),
            ("@pondage max_train=0", "expected a number from 1 to 256"),
            ("@pondage retry=many", "expected a number from 0 to 100"),
            ("@pondage also=a", "`also` needs a `key`"),
            ("@pondage key=a,b also=c", "`also` needs 2 parameters"),
            ("@pondage key=a,b,c,d,e,f,g,h,i", "at most 8"),
        ] {
            let wrong = ProcedureOptions::of_comment(comment).expect_err(comment);
            assert!(wrong.contains(complaint), "{comment}: {wrong}");
        }
    }

    #[test]
    fn the_stronger_source_counts_where_it_says_something() {
        let weaker = ProcedureOptions {
            key: names(&["a"]),
            also: names(&["b"]),
            mode: Some(ProcedureMode::Lane),
            max_train: Some(5),
            ..ProcedureOptions::default()
        };
        let stronger = ProcedureOptions { retry: Some(1), ..ProcedureOptions::default() };
        let both = stronger.clone().over(&weaker);
        assert_eq!((both.key.clone(), both.also.clone()), (names(&["a"]), names(&["b"])));
        assert_eq!((both.mode(), both.max_train(), both.retry()), (ProcedureMode::Lane, 5, 1));
        let keyed = ProcedureOptions { key: names(&["c"]), ..stronger };
        assert!(keyed.over(&weaker).also.is_empty(), "it was another key's");
    }
}
