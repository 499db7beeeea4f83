//! Caches that are wrong, each in one way, and one that is sound.
//!
//! They stand before PostgreSQL in this process and know of every write, because all writers go
//! through them. The sound one serves nothing while somebody writes, and forgets all behind it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::door::Rows;
use crate::reader::UNHEARD;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Answers of before a commit that is told, and not yet visible, are kept.
    Unsettled,
    /// Changes of one table are not told to what depends on it.
    MissingTag,
    /// What was written is known a moment after the writer was told, and nobody waits.
    TokenIgnored,
    /// Settings are not in the key.
    SettingMissing,
    /// TRUNCATE is taken for something that changes no row.
    TruncateMissed,
    /// Answers within a transaction, which only it may see, are kept for all.
    Uncommitted,
    /// What mirrors answer stays as it was.
    MirrorLeft,
}

impl Fault {
    pub const ALL: [Fault; 8] = [
        Fault::None,
        Fault::Unsettled,
        Fault::MissingTag,
        Fault::TokenIgnored,
        Fault::SettingMissing,
        Fault::TruncateMissed,
        Fault::Uncommitted,
        Fault::MirrorLeft,
    ];
}

/// How late the late one is.
const LATE: Duration = Duration::from_millis(30);

/// In the key of what mirrors answer.
const MIRRORED: &str = "by mirrors: ";

#[derive(Debug, Default)]
struct State {
    kept: HashMap<String, Rows>,
    writers: usize,
    writes: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Broken {
    fault: Fault,
    state: Mutex<State>,
}

impl Broken {
    pub fn new(fault: Fault) -> Arc<Broken> {
        Arc::new(Broken { fault, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while held")
    }

    /// Answers from what is kept, or asks and keeps.
    pub fn read(
        &self,
        sql: &str,
        setting: &str,
        in_transaction: bool,
        ask: impl FnOnce() -> Option<Rows>,
    ) -> Option<(Rows, bool)> {
        let setting = if self.fault == Fault::SettingMissing { "" } else { setting };
        // As mirrors do, it answers whatever the value is that never was there.
        let shape = sql.split(UNHEARD).next().unwrap_or(sql);
        let mark = if shape == sql { "" } else { MIRRORED };
        let key = format!("{setting} {mark}{shape}");
        let quiet = |state: &State| {
            state.writers == 0 || matches!(self.fault, Fault::Unsettled | Fault::TokenIgnored)
        };
        let before = {
            let state = self.state();
            let kept = state.kept.get(&key).filter(|_| quiet(&state) && !in_transaction);
            if let Some(kept) = kept {
                return Some((kept.clone(), true));
            }
            (quiet(&state), state.writes)
        };
        let rows = ask()?;
        let mut state = self.state();
        let may = !in_transaction && before == (true, state.writes);
        if may || (in_transaction && self.fault == Fault::Uncommitted) {
            state.kept.insert(key, rows.clone());
        }
        Some((rows, false))
    }

    /// Around everything that may write.
    pub fn write<T>(self: &Arc<Self>, run: impl FnOnce() -> T) -> T {
        {
            let mut state = self.state();
            state.writers += 1;
            state.writes += 1;
            if self.fault == Fault::Unsettled {
                state.kept.clear();
            }
        }
        let done = run();
        let mut state = self.state();
        state.writers -= 1;
        match self.fault {
            Fault::Unsettled => return done,
            Fault::TokenIgnored => {
                let late = self.clone();
                std::thread::spawn(move || {
                    std::thread::sleep(LATE);
                    let mut state = late.state();
                    state.writes += 1;
                    state.kept.clear();
                });
                return done;
            }
            Fault::MissingTag => state.kept.retain(|key, _| key.contains("from b ")),
            Fault::TruncateMissed => {
                state.kept.retain(|key, _| key.contains("from e"));
            }
            Fault::MirrorLeft => state.kept.retain(|key, _| key.contains(MIRRORED)),
            _ => state.kept.clear(),
        }
        state.writes += 1;
        done
    }
}
