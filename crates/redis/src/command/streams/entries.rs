//! Entries: XADD, XLEN, XRANGE, XREVRANGE, XDEL, XTRIM, XSETID.

use super::{
    bound, id, tell_entry, tell_id, unsigned, wrong_number, Args, Call, Failure, Id, Outcome,
};
use crate::command::number::integer;
use crate::value::stream::{after, encode_fields, Head, Stream, ID_MAX};
use crate::value::Tracked;

/// Nodes that `~` removes at most when nothing else is said, entries if nodes have no size, and
/// entries in any case (`t_stream.c`, `streamParseAddOrTrimArgsOrReply`).
const NODES_MAX: usize = 100;
const SIZELESS_MAX: usize = 10_000;
const ROUGHLY_MAX: usize = 1_000_000;

/// XADD's id.
#[derive(Clone, Copy)]
enum Wish {
    /// `*`
    Any,
    /// `ms-*`
    Within(u64),
    This(Id),
}

#[derive(Clone, Copy)]
enum Keep {
    /// At most so many entries.
    Len(usize),
    /// Those from this id on.
    From(Id),
}

/// Options of XADD and XTRIM.
struct Trim {
    keep: Option<Keep>,
    roughly: bool,
    /// 0: without limit.
    limit: usize,
    /// Entries of a node, which `~` removes as a whole.
    node: usize,
    make: bool,
    wish: Wish,
    /// Where the id is.
    at: usize,
}

fn parse(args: Args<'_>, adds: bool, node: usize) -> Result<Trim, Failure> {
    let mut trim = Trim {
        keep: None,
        roughly: false,
        limit: 0,
        node: if node == 0 { usize::MAX } else { node },
        make: true,
        wish: Wish::Any,
        at: args.len(),
    };
    let mut limited = false;
    let mut at = 2;
    while at < args.len() {
        let more = args.len() - at - 1;
        if adds && args.at(at) == b"*" {
            trim.at = at;
            break;
        } else if (args.is(at, "maxlen") || args.is(at, "minid")) && more > 0 {
            if trim.keep.is_some() {
                return Err(Failure::text(
                    "ERR syntax error, MAXLEN and MINID options at the same time are not \
                     compatible",
                ));
            }
            let by_len = args.is(at, "maxlen");
            trim.roughly = more >= 2 && args.at(at + 1) == b"~";
            if more >= 2 && matches!(args.at(at + 1), b"~" | b"=") {
                at += 1;
            }
            at += 1;
            trim.keep = Some(if by_len {
                let len = integer(args.at(at))?;
                let len = usize::try_from(len);
                Keep::Len(len.map_err(|_| Failure::text("ERR The MAXLEN argument must be >= 0."))?)
            } else {
                Keep::From(id(args.at(at), 0)?)
            });
        } else if args.is(at, "limit") && more > 0 {
            at += 1;
            let limit = usize::try_from(integer(args.at(at))?);
            trim.limit =
                limit.map_err(|_| Failure::text("ERR The LIMIT argument must be >= 0."))?;
            limited = true;
        } else if adds && args.is(at, "nomkstream") {
            trim.make = false;
        } else if adds {
            trim.wish = wish(args.at(at))?;
            trim.at = at;
            break;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    if trim.limit > 0 && trim.keep.is_none() {
        return Err(Failure::text(
            "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
        ));
    }
    if !adds && trim.keep.is_none() {
        return Err(Failure::text(
            "ERR syntax error, XTRIM must be called with a trimming strategy",
        ));
    }
    if limited && !trim.roughly {
        return Err(Failure::text(
            "ERR syntax error, LIMIT cannot be used without the special ~ option",
        ));
    }
    if !limited && trim.roughly {
        let most = if node == 0 { SIZELESS_MAX } else { node.saturating_mul(NODES_MAX) };
        trim.limit = most.min(ROUGHLY_MAX);
    }
    Ok(trim)
}

fn wish(word: &[u8]) -> Result<Wish, Failure> {
    if let Some(ms) = word.strip_suffix(b"-*").and_then(unsigned) {
        return Ok(Wish::Within(ms));
    }
    id(word, 0).map(Wish::This)
}

pub fn xadd(call: &mut Call<'_>) -> Outcome {
    let (args, key) = (call.args, call.args.at(1));
    let trim = parse(args, true, call.server.settings.stream_node_max_entries)?;
    let fields = args.from(trim.at + 1);
    if fields.len() < 2 || fields.len() % 2 == 1 {
        return Err(wrong_number("xadd"));
    }
    if matches!(trim.wish, Wish::This((0, 0))) {
        return Err(Failure::text("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let found = call.keys.stream(key)?;
    if found.is_none() && !trim.make {
        call.reply.null();
        return Ok(());
    }
    let last = found.map_or((0, 0), |stream| stream.head_now().last);
    let next = after(last).ok_or(Failure::text(
        "ERR The stream has exhausted the last possible ID, unable to add more items",
    ))?;
    let now = u64::try_from(call.keys.now()).unwrap_or(0);
    let chosen = match trim.wish {
        Wish::Any if now > last.0 => (now, 0),
        Wish::Any => next,
        Wish::Within(ms) if ms == last.0 && last.1 < u64::MAX => next,
        // Without room, as with too small an id.
        Wish::Within(ms) => (ms, 0),
        Wish::This(id) => id,
    };
    if chosen <= last {
        return Err(Failure::text(
            "ERR The ID specified in XADD is equal or smaller than the target stream top item",
        ));
    }
    let stream = call.keys.stream_or_new(key)?;
    stream.append(chosen, encode_fields(fields.iter()));
    let removed = shorten(stream, &trim);
    call.event(b't', "xadd", key);
    if removed > 0 {
        call.event(b't', "xtrim", key);
    }
    call.keys.signal(key);
    tell_id(call.reply, chosen);
    Ok(())
}

/// Gives how many entries were removed.
fn shorten(stream: &mut Stream, trim: &Trim) -> usize {
    let mut most = match trim.keep {
        None => 0,
        Some(Keep::Len(len)) => stream.len().saturating_sub(len),
        // Only as many as can be removed are counted.
        Some(Keep::From(id)) => {
            let below = stream.range((0, 0), ID_MAX).take_while(|(other, _)| *other < id);
            below.take(if trim.limit > 0 { trim.limit } else { usize::MAX }).count()
        }
    };
    if trim.limit > 0 {
        most = most.min(trim.limit);
    }
    if trim.roughly {
        most = whole_nodes(stream, most, trim.node);
    }
    stream.trim(most);
    most
}

/// How many of the first `most` entries are whole nodes. Redis begins a node with every so many
/// entries that are added; which of them XDEL has removed since is not known here.
fn whole_nodes(stream: &Stream, most: usize, node: usize) -> usize {
    let added = usize::try_from(stream.head_now().added).unwrap_or(usize::MAX);
    let (len, mut removed) = (stream.len(), 0);
    loop {
        let before = added.saturating_sub(len - removed);
        let next = (node - before % node).min(len - removed);
        if next == 0 || removed + next > most {
            return removed;
        }
        removed += next;
    }
}

pub fn xtrim(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    let trim = parse(call.args, false, call.server.settings.stream_node_max_entries)?;
    let removed = match call.keys.stream_mut(key)? {
        Some(stream) => shorten(stream, &trim),
        None => 0,
    };
    if removed > 0 {
        call.event(b't', "xtrim", key);
    }
    call.reply.integer(removed as i64);
    Ok(())
}

pub fn xlen(call: &mut Call<'_>) -> Outcome {
    let len = call.keys.stream(call.args.at(1))?.map_or(0, Tracked::len);
    call.reply.integer(len as i64);
    Ok(())
}

pub fn xrange(call: &mut Call<'_>) -> Outcome {
    range(call, false)
}

pub fn xrevrange(call: &mut Call<'_>) -> Outcome {
    range(call, true)
}

fn range(call: &mut Call<'_>, reverse: bool) -> Outcome {
    let args = call.args;
    let (from, to) = if reverse { (3, 2) } else { (2, 3) };
    let from = bound(args.at(from), true)?;
    let to = bound(args.at(to), false)?;
    let (mut count, mut at) = (None, 4);
    while at < args.len() {
        if !args.is(at, "count") || at + 1 == args.len() {
            return Err(Failure::SYNTAX);
        }
        count = Some(integer(args.at(at + 1))?.max(0));
        at += 2;
    }
    let Some(stream) = call.keys.stream(args.at(1))? else {
        call.reply.array(0);
        return Ok(());
    };
    if count == Some(0) {
        call.reply.null_array();
        return Ok(());
    }
    let most = count.map_or(usize::MAX, |count| count as usize);
    let found: Vec<_> = match reverse {
        true => stream.range(from, to).rev().take(most).collect(),
        false => stream.range(from, to).take(most).collect(),
    };
    call.reply.array(found.len());
    found.iter().for_each(|(id, fields)| tell_entry(call.reply, *id, fields));
    Ok(())
}

pub fn xdel(call: &mut Call<'_>) -> Outcome {
    let key = call.args.at(1);
    if call.keys.stream(key)?.is_none() {
        call.reply.integer(0);
        return Ok(());
    }
    let ids: Result<Vec<Id>, Failure> = call.args.from(2).iter().map(|word| id(word, 0)).collect();
    let ids = ids?;
    let Some(stream) = call.keys.stream_mut(key)? else { return Ok(()) };
    let gone = ids.into_iter().filter(|id| stream.delete(*id)).count();
    if gone > 0 {
        call.event(b't', "xdel", key);
    }
    call.reply.integer(gone as i64);
    Ok(())
}

pub fn xsetid(call: &mut Call<'_>) -> Outcome {
    let (args, key) = (call.args, call.args.at(1));
    let last = id(args.at(2), 0)?;
    let (mut added, mut deleted, mut at) = (None, (0, 0), 3);
    while at < args.len() {
        let value = args.get(at + 1).ok_or(Failure::SYNTAX)?;
        if args.is(at, "entriesadded") {
            let count = u64::try_from(integer(value)?);
            added = Some(count.map_err(|_| Failure::text("ERR entries_added must be positive"))?);
        } else if args.is(at, "maxdeletedid") {
            deleted = id(value, 0)?;
            if last < deleted {
                return Err(Failure::text(
                    "ERR The ID specified in XSETID is smaller than the provided \
                     max_deleted_entry_id",
                ));
            }
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 2;
    }
    let stream = call.keys.stream(key)?.ok_or(Failure::NO_SUCH_KEY)?;
    let head = stream.head_now();
    if last < head.deleted {
        return Err(Failure::text(
            "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
        ));
    }
    if stream.top_id().is_some_and(|top| last < top) {
        return Err(Failure::text(
            "ERR The ID specified in XSETID is smaller than the target stream top item",
        ));
    }
    if !stream.is_empty() && added.is_some_and(|added| added < stream.len() as u64) {
        return Err(Failure::text(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    let deleted = if deleted == (0, 0) { head.deleted } else { deleted };
    let head = Head { last, deleted, added: added.unwrap_or(head.added) };
    if let Some(stream) = call.keys.stream_mut(key)? {
        stream.set_head(head);
    }
    call.event(b't', "xsetid", key);
    call.reply.ok();
    Ok(())
}
