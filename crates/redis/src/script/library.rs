//! Libraries of functions, for FUNCTION and FCALL.
//!
//! Their code is stored like a key ([`crate::keyspace::LIBRARIES`]); here is what Lua has made of it.

use hashbrown::HashMap;

use super::machine::{Machine, Registered};
use super::shebang;

/// What loading a library may take.
const LOAD_MS: u64 = 500;

/// Bytes of code of all libraries.
const BYTES_MAX: usize = 32 << 20;

#[derive(Debug)]
pub struct Library {
    pub name: Vec<u8>,
    pub code: Box<[u8]>,
    pub functions: Vec<Registered>,
    /// What the first of them is called inside of the Lua state; the others follow.
    first: u64,
}

/// A function to be called.
#[derive(Debug, Clone, Copy)]
pub struct Callee {
    pub id: u64,
    pub no_writes: bool,
}

/// What FUNCTION RESTORE does with what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Append,
    Replace,
    Flush,
}

#[derive(Debug, Default)]
pub struct Libraries {
    all: Vec<Library>,
    functions: HashMap<Vec<u8>, Callee, foldhash::fast::RandomState>,
}

impl Libraries {
    pub fn iter(&self) -> impl Iterator<Item = &Library> {
        self.all.iter()
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Of code.
    pub fn bytes(&self) -> usize {
        self.all.iter().map(|library| library.code.len()).sum()
    }

    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// A function by its name in any case.
    pub fn find(&self, name: &[u8]) -> Option<Callee> {
        self.functions.get(&name.to_ascii_lowercase()).copied()
    }

    /// Adds a library, in the place of the one with its name if that is wanted; gives the name.
    pub fn load(
        &mut self,
        machine: &Machine,
        next: &mut u64,
        code: &[u8],
        replace: bool,
    ) -> Result<Vec<u8>, String> {
        if self.bytes() + code.len() > BYTES_MAX {
            return Err("the libraries are too long".into());
        }
        let name = name_of(code)?;
        let old = self.all.iter().position(|library| library.name == name);
        if old.is_some() && !replace {
            return Err(format!("Library '{}' already exists", lossy(&name)));
        }
        let library = compile(machine, next, code)?;
        if let Err(why) = self.collides(&library, |other| other.name == name) {
            forget(machine, &library);
            return Err(why);
        }
        if let Some(old) = old {
            forget(machine, &self.all.remove(old));
        }
        self.all.push(library);
        self.index();
        Ok(name)
    }

    /// Whether a function has the name of another's that stays.
    fn collides(&self, new: &Library, gone: impl Fn(&Library) -> bool) -> Result<(), String> {
        for other in self.all.iter().filter(|other| !gone(other)) {
            for function in &new.functions {
                let same = |each: &Registered| each.name.eq_ignore_ascii_case(&function.name);
                if other.functions.iter().any(same) {
                    return Err(format!("Function {} already exists", lossy(&function.name)));
                }
            }
        }
        Ok(())
    }

    /// False when there is none of that name.
    pub fn delete(&mut self, machine: Option<&Machine>, name: &[u8]) -> bool {
        let Some(at) = self.all.iter().position(|library| library.name == name) else {
            return false;
        };
        let library = self.all.remove(at);
        if let Some(machine) = machine {
            forget(machine, &library);
        }
        self.index();
        true
    }

    pub fn flush(&mut self, machine: Option<&Machine>) {
        for library in std::mem::take(&mut self.all) {
            if let Some(machine) = machine {
                forget(machine, &library);
            }
        }
        self.index();
    }

    /// All libraries, or none of them; gives their names.
    pub fn restore(
        &mut self,
        machine: &Machine,
        next: &mut u64,
        codes: &[Vec<u8>],
        policy: Policy,
    ) -> Result<Vec<Vec<u8>>, String> {
        let mut new = Libraries::default();
        let mut joined = Ok(());
        for code in codes {
            joined = new.load(machine, next, code, false).map(|_| ());
            if joined.is_err() {
                break;
            }
        }
        joined = joined.and_then(|()| match policy {
            Policy::Flush => Ok(()),
            _ => self.may_join(&new, policy == Policy::Replace),
        });
        if let Err(why) = joined {
            new.flush(Some(machine));
            return Err(why);
        }
        let gone = |old: &Library| {
            policy == Policy::Flush || new.all.iter().any(|library| library.name == old.name)
        };
        let (old, kept) = std::mem::take(&mut self.all).into_iter().partition(gone);
        let old: Vec<Library> = old;
        old.iter().for_each(|library| forget(machine, library));
        let names = new.all.iter().map(|library| library.name.clone()).collect();
        self.all = kept;
        self.all.append(&mut new.all);
        self.index();
        Ok(names)
    }

    /// What is stored is this. Libraries whose code is the same stay, with what their functions
    /// have left in local variables. What can't be loaded, which only SQL can have stored, or a
    /// Pondage in which it could be, is left out.
    pub fn follow<'a>(
        &mut self,
        machine: &Machine,
        next: &mut u64,
        stored: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) {
        let mut old = std::mem::take(&mut self.all);
        let (mut new, mut all) = (Vec::new(), Vec::new());
        for (name, code) in stored {
            match old.iter().position(|library| library.name == name && *library.code == *code) {
                Some(at) => all.push(old.swap_remove(at)),
                None => new.push((name, code)),
            }
        }
        self.all = all;
        old.iter().for_each(|library| forget(machine, library));
        for (name, code) in new {
            if name_of(code).is_ok_and(|named| named == name) {
                drop(self.load(machine, next, code, false));
            }
        }
        self.index();
    }

    fn may_join(&self, new: &Libraries, replace: bool) -> Result<(), String> {
        let same = |other: &Library| new.all.iter().any(|library| library.name == other.name);
        if let Some(old) = self.all.iter().find(|old| !replace && same(old)) {
            return Err(format!("Library {} already exists", lossy(&old.name)));
        }
        new.all.iter().try_for_each(|library| self.collides(library, same))
    }

    /// The Lua state is another: everything is loaded into it again. What does not load any more
    /// is gone.
    pub fn reload(&mut self, machine: &Machine, next: &mut u64) {
        for library in &mut self.all {
            match compile(machine, next, &library.code) {
                Ok(again) => *library = again,
                Err(_) => library.functions.clear(),
            }
        }
        self.all.retain(|library| !library.functions.is_empty());
        self.index();
    }

    fn index(&mut self) {
        self.functions.clear();
        for library in &self.all {
            for (id, function) in (library.first..).zip(&library.functions) {
                let no_writes = function.flags.contains(&"no-writes");
                let name = function.name.to_ascii_lowercase();
                self.functions.insert(name, Callee { id, no_writes });
            }
        }
    }
}

fn name_of(code: &[u8]) -> Result<Vec<u8>, String> {
    let (library, _) = shebang::of_library(code)?;
    let valid = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if library.name.is_empty() || !library.name.iter().all(valid) {
        return Err("Library names can only contain letters, numbers, or underscores(_) and must \
                    be at least one character long"
            .into());
    }
    if !library.engine.eq_ignore_ascii_case(b"lua") {
        return Err(format!("Engine '{}' not found", lossy(&library.engine)));
    }
    Ok(library.name)
}

fn compile(machine: &Machine, next: &mut u64, code: &[u8]) -> Result<Library, String> {
    let name = name_of(code)?;
    let (_, begin) = shebang::of_library(code)?;
    let functions = machine.load(&code[begin..], *next, LOAD_MS)?;
    if functions.is_empty() {
        return Err("No functions registered".into());
    }
    let first = *next;
    *next += functions.len() as u64;
    Ok(Library { name, code: code.into(), functions, first })
}

fn forget(machine: &Machine, library: &Library) {
    (library.first..).zip(&library.functions).for_each(|(id, _)| machine.forget_function(id));
}

fn lossy(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
