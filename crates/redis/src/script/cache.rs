//! Scripts by their SHA-1, for EVALSHA.
//!
//! They are in memory only, as in Redis: a client that is told NOSCRIPT sends the text again. What
//! SCRIPT LOAD was given stays until SCRIPT FLUSH; when there is too much of it SCRIPT LOAD fails.
//! What only EVAL was given goes, the oldest first, when there is too much of that.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::sha1::Digest;
use super::shebang::Permits;

/// Scripts and bytes of them that SCRIPT LOAD has given.
const LOADED_MAX: usize = 10_000;
const LOADED_BYTES_MAX: usize = 32 << 20;

/// Scripts and bytes of them that EVAL has given.
const EVALUATED_MAX: usize = 500;
const EVALUATED_BYTES_MAX: usize = 8 << 20;

#[derive(Debug)]
pub struct Script {
    /// What it is called inside of the Lua state.
    pub id: u64,
    pub permits: Permits,
    pub text: Box<[u8]>,
    /// By SCRIPT LOAD.
    pub loaded: bool,
    /// The Lua state has it.
    pub compiled: bool,
}

#[derive(Debug, Default)]
pub struct Cache {
    scripts: HashMap<Digest, Script, foldhash::fast::RandomState>,
    evaluated: VecDeque<Digest>,
    evaluated_bytes: usize,
    loaded: usize,
    loaded_bytes: usize,
}

impl Cache {
    pub fn get(&self, digest: &Digest) -> Option<&Script> {
        self.scripts.get(digest)
    }

    pub fn get_mut(&mut self, digest: &Digest) -> Option<&mut Script> {
        self.scripts.get_mut(digest)
    }

    pub fn has(&self, digest: &Digest) -> bool {
        self.scripts.contains_key(digest)
    }

    /// Whether another script of that many bytes may be loaded.
    pub fn may_load(&self, bytes: usize) -> bool {
        self.loaded < LOADED_MAX && self.loaded_bytes + bytes <= LOADED_BYTES_MAX
    }

    /// Keeps a script that it does not have. Gives the numbers of those that are gone for it.
    pub fn insert(&mut self, digest: Digest, script: Script) -> Vec<u64> {
        let bytes = script.text.len();
        if script.loaded {
            self.loaded += 1;
            self.loaded_bytes += bytes;
        } else {
            self.evaluated.push_back(digest);
            self.evaluated_bytes += bytes;
        }
        self.scripts.insert(digest, script);
        let mut gone = Vec::new();
        // The newest stays, however large it is.
        while self.evaluated.len() > 1
            && (self.evaluated.len() > EVALUATED_MAX || self.evaluated_bytes > EVALUATED_BYTES_MAX)
        {
            let Some(oldest) = self.evaluated.pop_front() else { break };
            if let Some(script) = self.scripts.remove(&oldest) {
                self.evaluated_bytes -= script.text.len();
                gone.push(script.id);
            }
        }
        gone
    }

    /// A script that it has stays from now on.
    pub fn keep(&mut self, digest: &Digest) {
        let Some(script) = self.scripts.get_mut(digest).filter(|script| !script.loaded) else {
            return;
        };
        script.loaded = true;
        self.evaluated.retain(|other| other != digest);
        self.evaluated_bytes -= script.text.len();
        self.loaded += 1;
        self.loaded_bytes += script.text.len();
    }

    /// The Lua state is another: it knows none of them.
    pub fn uncompiled(&mut self) {
        self.scripts.values_mut().for_each(|script| script.compiled = false);
    }

    pub fn len(&self) -> usize {
        self.scripts.len()
    }

    /// Of their texts.
    pub fn bytes(&self) -> usize {
        self.evaluated_bytes + self.loaded_bytes
    }
}
