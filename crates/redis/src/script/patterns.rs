//! Lua's patterns: `string.find`, `match`, `gmatch`, `gsub`.
//!
//! Lua's own code is fast, but a pattern can make it run for ever or recurse until the stack is
//! gone, and no hook is called meanwhile. Here each step is counted, and recursion is bounded.
//!
//! Source: Lua 5.1 reference manual, section 5.4.1.

use std::sync::Arc;

use mlua::{Lua, MultiValue, Table, Value};

use super::host::{
    self, bad_argument, ending, give_several, integer_or, Complaint, Control, TEXT_BYTES_MAX,
};

/// `LUA_MAXCAPTURES`.
const CAPTURES_MAX: usize = 32;

/// Calls within calls of one match.
const DEPTH_MAX: usize = 200;

/// Steps between two looks at the clock.
const STEPS: usize = 4096;

const ESCAPE: u8 = b'%';

pub fn install(lua: &Lua, host: &Table, control: &Arc<Control>) -> mlua::Result<()> {
    for (name, find) in [("find", true), ("match", false)] {
        let shared = control.clone();
        let run = move |lua: &Lua, args: MultiValue| {
            give_several(lua, find_or_match(lua, &args, name, find, &shared))
        };
        host.raw_set(name, lua.create_function(run)?)?;
    }
    let shared = control.clone();
    let run = move |lua: &Lua, args: MultiValue| give_several(lua, gmatch(lua, &args, &shared));
    host.raw_set("gmatch", lua.create_function(run)?)?;
    let shared = control.clone();
    let run = move |lua: &Lua, args: MultiValue| give_several(lua, search(lua, &args, &shared));
    host.raw_set("search", lua.create_function(run)?)?;
    let shared = control.clone();
    let run = move |lua: &Lua, args: MultiValue| give_several(lua, gsub(lua, &args, &shared));
    host.raw_set("gsub", lua.create_function(run)?)
}

fn find_or_match(
    lua: &Lua,
    args: &MultiValue,
    name: &str,
    find: bool,
    control: &Control,
) -> Result<Vec<Value>, Complaint> {
    let text = host::text(lua, args, 0, name)?;
    let pattern = host::text(lua, args, 1, name)?;
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let init = match integer_or(lua, args, 2, name, 1)? {
        init @ 1.. => init as usize - 1,
        0 => 0,
        init => text.len().saturating_sub(init.unsigned_abs() as usize),
    };
    let init = init.min(text.len());
    let plain =
        args.get(3).is_some_and(|value| !matches!(value, Value::Nil | Value::Boolean(false)));
    let special = pattern.iter().any(|byte| b"^$*+?.([%-".contains(byte));
    if find && (plain || !special) {
        control.spend_bytes(text.len() - init);
        let found = memchr::memmem::find(&text[init..], &pattern);
        return Ok(match found {
            Some(at) => {
                let begin = (init + at) as i64;
                vec![Value::Integer(begin + 1), Value::Integer(begin + pattern.len() as i64)]
            }
            None => vec![Value::Nil],
        });
    }
    let (anchored, pattern) = match pattern.strip_prefix(b"^") {
        Some(rest) => (true, rest),
        None => (false, &*pattern),
    };
    let mut matcher = Matcher::new(&text, pattern, control);
    for begin in init..=text.len() {
        if let Some(end) = matcher.try_at(begin)? {
            let mut values = Vec::new();
            if find {
                values.extend([Value::Integer(begin as i64 + 1), Value::Integer(end as i64)]);
            }
            matcher.captures(lua, begin, end, !find, &mut values)?;
            return Ok(values);
        }
        if anchored {
            break;
        }
    }
    Ok(vec![Value::Nil])
}

/// Where to go on, false when there is no more; and the captures.
fn gmatch(lua: &Lua, args: &MultiValue, control: &Control) -> Result<Vec<Value>, Complaint> {
    let text = host::text(lua, args, 0, "gmatch")?;
    let pattern = host::text(lua, args, 1, "gmatch")?;
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let from = integer_or(lua, args, 2, "gmatch", 0)? as usize;
    let mut matcher = Matcher::new(&text, &pattern, control);
    for begin in from..=text.len() {
        if let Some(end) = matcher.try_at(begin)? {
            // Behind an empty match the next begins one further.
            let next = if end == begin { end + 1 } else { end };
            let mut values = vec![Value::Integer(next as i64)];
            matcher.captures(lua, begin, end, true, &mut values)?;
            return Ok(values);
        }
    }
    Ok(vec![Value::Boolean(false), Value::Nil])
}

/// The next match for a `gsub`: where it begins and ends, and its captures; or nothing.
fn search(lua: &Lua, args: &MultiValue, control: &Control) -> Result<Vec<Value>, Complaint> {
    let text = host::text(lua, args, 0, "gsub")?;
    let pattern = host::text(lua, args, 1, "gsub")?;
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let from = integer_or(lua, args, 2, "gsub", 0)? as usize;
    let (last, pattern) = match pattern.strip_prefix(b"^") {
        Some(_) if from > 0 => return Ok(Vec::new()),
        Some(rest) => (0, rest),
        None => (text.len(), &*pattern),
    };
    let mut matcher = Matcher::new(&text, pattern, control);
    for begin in from..=last {
        if let Some(end) = matcher.try_at(begin)? {
            let mut values = vec![Value::Integer(begin as i64 + 1), Value::Integer(end as i64)];
            matcher.captures(lua, begin, end, true, &mut values)?;
            return Ok(values);
        }
    }
    Ok(Vec::new())
}

/// With a string; see the sandbox for the others.
fn gsub(lua: &Lua, args: &MultiValue, control: &Control) -> Result<Vec<Value>, Complaint> {
    let text = host::text(lua, args, 0, "gsub")?;
    let pattern = host::text(lua, args, 1, "gsub")?;
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let replacement = match args.get(2) {
        Some(Value::Integer(_) | Value::Number(_) | Value::String(_)) => {
            host::text(lua, args, 2, "gsub")?
        }
        _ => return Err(bad_argument(2, "gsub", "string/function/table expected")),
    };
    let most = integer_or(lua, args, 3, "gsub", text.len() as i64 + 1)?;
    let (anchored, pattern) = match pattern.strip_prefix(b"^") {
        Some(rest) => (true, rest),
        None => (false, &*pattern),
    };
    let mut matcher = Matcher::new(&text, pattern, control);
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0);
    while count < most {
        let end = matcher.try_at(at)?;
        if let Some(end) = end {
            count += 1;
            matcher.fill_in(lua, &replacement.as_bytes(), at, end, &mut out)?;
            if out.len() > TEXT_BYTES_MAX {
                return Err("resulting string too large".into());
            }
        }
        match end {
            Some(end) if end > at => at = end,
            _ if at < text.len() => {
                out.push(text[at]);
                at += 1;
            }
            _ => break,
        }
        if anchored {
            break;
        }
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    Ok(vec![Value::String(lua.create_string(out)?), Value::Integer(count)])
}

#[derive(Clone, Copy)]
struct Capture {
    begin: usize,
    len: Len,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Len {
    Open,
    /// `()`: the place only.
    Place,
    Bytes(usize),
}

struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    captures: [Capture; CAPTURES_MAX],
    level: usize,
    depth: usize,
    steps: usize,
    control: &'a Control,
}

/// Where a match ends, if there is one.
type Found = Result<Option<usize>, Complaint>;

impl<'a> Matcher<'a> {
    fn new(text: &'a [u8], pattern: &'a [u8], control: &'a Control) -> Matcher<'a> {
        let captures = [Capture { begin: 0, len: Len::Open }; CAPTURES_MAX];
        Matcher { text, pattern, captures, level: 0, depth: 0, steps: 0, control }
    }

    fn try_at(&mut self, begin: usize) -> Found {
        self.level = 0;
        self.matches(begin, 0)
    }

    fn step(&mut self) -> Result<(), Complaint> {
        self.steps += 1;
        if self.steps % STEPS == 0 && !self.control.spend(STEPS) {
            return Err(Complaint::Lua(ending()));
        }
        Ok(())
    }

    /// The pattern from `p` on, at `s`.
    fn matches(&mut self, s: usize, p: usize) -> Found {
        if self.depth == DEPTH_MAX {
            return Err("pattern too complex".into());
        }
        self.depth += 1;
        let found = self.sequence(s, p);
        self.depth -= 1;
        found
    }

    fn sequence(&mut self, mut s: usize, mut p: usize) -> Found {
        loop {
            self.step()?;
            match self.pattern.get(p) {
                None => return Ok(Some(s)),
                Some(b'(') if self.pattern.get(p + 1) == Some(&b')') => {
                    return self.open(s, p + 2, Len::Place);
                }
                Some(b'(') => return self.open(s, p + 1, Len::Open),
                Some(b')') => return self.close(s, p + 1),
                Some(b'$') if p + 1 == self.pattern.len() => {
                    return Ok((s == self.text.len()).then_some(s));
                }
                Some(&ESCAPE) => match self.pattern.get(p + 1) {
                    Some(b'b') => match self.balance(s, p + 2)? {
                        Some(end) => {
                            (s, p) = (end, p + 4);
                            continue;
                        }
                        None => return Ok(None),
                    },
                    Some(b'f') => {
                        p += 2;
                        if self.pattern.get(p) != Some(&b'[') {
                            return Err("missing '[' after '%f' in pattern".into());
                        }
                        let end = self.class_end(p)?;
                        let before = s.checked_sub(1).map_or(0, |at| self.text[at]);
                        let here = self.text.get(s).copied().unwrap_or(0);
                        if self.in_set(before, p, end - 1) || !self.in_set(here, p, end - 1) {
                            return Ok(None);
                        }
                        p = end;
                        continue;
                    }
                    Some(digit @ b'0'..=b'9') => match self.back_reference(s, *digit)? {
                        Some(end) => {
                            (s, p) = (end, p + 2);
                            continue;
                        }
                        None => return Ok(None),
                    },
                    _ => {}
                },
                _ => {}
            }
            let end = self.class_end(p)?;
            match self.pattern.get(end) {
                Some(b'?') => {
                    if self.single(s, p, end) {
                        if let Some(found) = self.matches(s + 1, end + 1)? {
                            return Ok(Some(found));
                        }
                    }
                    p = end + 1;
                }
                Some(b'*') => return self.greedy(s, p, end, 0),
                Some(b'+') => return self.greedy(s, p, end, 1),
                Some(b'-') => return self.lazy(s, p, end),
                _ => {
                    if !self.single(s, p, end) {
                        return Ok(None);
                    }
                    (s, p) = (s + 1, end);
                }
            }
        }
    }

    fn greedy(&mut self, s: usize, p: usize, end: usize, least: usize) -> Found {
        let mut count = 0;
        while self.single(s + count, p, end) {
            self.step()?;
            count += 1;
        }
        while count >= least {
            if let Some(found) = self.matches(s + count, end + 1)? {
                return Ok(Some(found));
            }
            match count.checked_sub(1) {
                Some(less) => count = less,
                None => break,
            }
        }
        Ok(None)
    }

    fn lazy(&mut self, mut s: usize, p: usize, end: usize) -> Found {
        loop {
            if let Some(found) = self.matches(s, end + 1)? {
                return Ok(Some(found));
            }
            if !self.single(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn open(&mut self, s: usize, p: usize, len: Len) -> Found {
        if self.level >= CAPTURES_MAX {
            return Err("too many captures".into());
        }
        self.captures[self.level] = Capture { begin: s, len };
        self.level += 1;
        let found = self.matches(s, p)?;
        if found.is_none() {
            self.level -= 1;
        }
        Ok(found)
    }

    fn close(&mut self, s: usize, p: usize) -> Found {
        let open = self.captures[..self.level].iter().rposition(|each| each.len == Len::Open);
        let at = open.ok_or("invalid pattern capture")?;
        self.captures[at].len = Len::Bytes(s - self.captures[at].begin);
        let found = self.matches(s, p)?;
        if found.is_none() {
            self.captures[at].len = Len::Open;
        }
        Ok(found)
    }

    fn balance(&mut self, s: usize, p: usize) -> Found {
        let (Some(begin), Some(end)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return Err("unbalanced pattern".into());
        };
        if self.text.get(s) != Some(begin) {
            return Ok(None);
        }
        let mut open = 1;
        for at in s + 1..self.text.len() {
            self.step()?;
            let byte = &self.text[at];
            if byte == end {
                open -= 1;
                if open == 0 {
                    return Ok(Some(at + 1));
                }
            } else if byte == begin {
                open += 1;
            }
        }
        Ok(None)
    }

    fn back_reference(&mut self, s: usize, digit: u8) -> Found {
        let at = usize::from(digit.wrapping_sub(b'1'));
        let capture = self.captures[..self.level].get(at);
        let Some(Capture { begin, len: Len::Bytes(len) }) = capture.copied() else {
            return Err("invalid capture index".into());
        };
        self.control.spend_bytes(len);
        let same = self.text[s..].starts_with(&self.text[begin..begin + len]);
        Ok(same.then_some(s + len))
    }

    /// Behind the single class that begins at `p`.
    fn class_end(&self, p: usize) -> Result<usize, Complaint> {
        let first = self.pattern.get(p).copied().unwrap_or(0);
        let mut at = p + 1;
        if first == ESCAPE {
            if at >= self.pattern.len() {
                return Err("malformed pattern (ends with '%')".into());
            }
            return Ok(at + 1);
        }
        if first != b'[' {
            return Ok(at);
        }
        if self.pattern.get(at) == Some(&b'^') {
            at += 1;
        }
        loop {
            // The first of a set may be a `]`.
            let Some(byte) = self.pattern.get(at) else {
                return Err("malformed pattern (missing ']')".into());
            };
            at += 1;
            if *byte == ESCAPE && at < self.pattern.len() {
                at += 1;
            }
            if self.pattern.get(at) == Some(&b']') {
                return Ok(at + 1);
            }
        }
    }

    fn single(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(byte) = self.text.get(s) else { return false };
        match self.pattern[p] {
            b'.' => true,
            ESCAPE => in_class(*byte, self.pattern[p + 1]),
            b'[' => self.in_set(*byte, p, end - 1),
            other => other == *byte,
        }
    }

    /// Whether the set from `[` at `p` to `]` at `end` has the byte.
    fn in_set(&self, byte: u8, p: usize, end: usize) -> bool {
        let mut at = p + 1;
        let inside = self.pattern[at] != b'^';
        if !inside {
            at += 1;
        }
        while at < end {
            let first = self.pattern[at];
            if first == ESCAPE {
                if in_class(byte, self.pattern[at + 1]) {
                    return inside;
                }
                at += 2;
            } else if self.pattern[at + 1] == b'-' && at + 2 < end {
                if (first..=self.pattern[at + 2]).contains(&byte) {
                    return inside;
                }
                at += 3;
            } else {
                if first == byte {
                    return inside;
                }
                at += 1;
            }
        }
        !inside
    }

    /// The captures of a match; of one without any the whole, if that is wanted.
    fn captures(
        &self,
        lua: &Lua,
        begin: usize,
        end: usize,
        whole: bool,
        values: &mut Vec<Value>,
    ) -> Result<(), Complaint> {
        let count = if self.level == 0 && whole { 1 } else { self.level };
        for at in 0..count {
            values.push(self.capture(lua, at, begin, end)?);
        }
        Ok(())
    }

    fn capture(&self, lua: &Lua, at: usize, begin: usize, end: usize) -> Result<Value, Complaint> {
        let bytes = if at >= self.level {
            if at != 0 {
                return Err("invalid capture index".into());
            }
            &self.text[begin..end]
        } else {
            match self.captures[at] {
                Capture { begin, len: Len::Place } => {
                    return Ok(Value::Integer(begin as i64 + 1));
                }
                Capture { begin, len: Len::Bytes(len) } => &self.text[begin..begin + len],
                Capture { len: Len::Open, .. } => return Err("unfinished capture".into()),
            }
        };
        Ok(Value::String(lua.create_string(bytes)?))
    }

    /// A replacement in which `%1` stands for the first capture.
    fn fill_in(
        &self,
        lua: &Lua,
        with: &[u8],
        begin: usize,
        end: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Complaint> {
        let mut bytes = with.iter();
        while let Some(byte) = bytes.next() {
            if *byte != ESCAPE {
                out.push(*byte);
                continue;
            }
            match bytes.next().copied().unwrap_or(0) {
                b'0' => out.extend_from_slice(&self.text[begin..end]),
                digit @ b'1'..=b'9' => {
                    match self.capture(lua, usize::from(digit - b'1'), begin, end)? {
                        Value::String(text) => out.extend_from_slice(&text.as_bytes()),
                        Value::Integer(place) => {
                            out.extend_from_slice(place.to_string().as_bytes());
                        }
                        _ => {}
                    }
                }
                other => out.push(other),
            }
        }
        Ok(())
    }
}

fn in_class(byte: u8, class: u8) -> bool {
    let is = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b' ' | 9..=13),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is != class.is_ascii_uppercase()
}
