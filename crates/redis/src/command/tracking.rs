//! CLIENT TRACKING and its like.

use crate::call::{whole, Call};
use crate::failure::{Failure, Outcome};
use crate::session::Session;
use crate::tracking::Tracking;

pub fn tracking(call: &mut Call<'_>) -> Outcome {
    let (wanted, prefixes) = options(call)?;
    if call.args.is(2, "on") {
        check(call.session, &wanted, &prefixes)?;
        let mut wanted = wanted;
        wanted.prefixes = prefixes.into_iter().map(Box::from).collect();
        if wanted.broadcast && wanted.prefixes.is_empty() {
            wanted.prefixes.insert(Box::default());
        }
        call.server.tracking.on(call.session, wanted);
    } else if call.args.is(2, "off") {
        call.server.tracking.off(call.session);
    } else {
        return Err(Failure::SYNTAX);
    }
    call.keys.is_tracked = !call.server.tracking.is_empty();
    call.reply.ok();
    Ok(())
}

fn options<'a>(call: &Call<'a>) -> Result<(Tracking, Vec<&'a [u8]>), Failure> {
    let args = call.args;
    let (mut wanted, mut prefixes) = (Tracking::default(), Vec::new());
    let mut at = 3;
    while at < args.len() {
        let more = at + 1 < args.len();
        match args.at(at).to_ascii_lowercase().as_slice() {
            b"redirect" if more => {
                at += 1;
                if wanted.redirect != 0 {
                    return Err(Failure::text(
                        "ERR A client can only redirect to a single other client",
                    ));
                }
                let id = super::number::integer(args.at(at))?;
                let is = |session: &&Session| session.number as i64 == id && !session.killed;
                let mut all = call.server.sessions.iter().chain([&*call.session]);
                let target = all.find(is).ok_or(Failure::text(
                    "ERR The client ID you want redirect to does not exist",
                ))?;
                (wanted.redirect, wanted.redirect_to) = (target.number, Some(target.conn));
            }
            b"bcast" => wanted.broadcast = true,
            b"optin" => wanted.opt_in = true,
            b"optout" => wanted.opt_out = true,
            b"noloop" => wanted.no_loop = true,
            b"prefix" if more => {
                at += 1;
                prefixes.push(args.at(at));
            }
            _ => return Err(Failure::SYNTAX),
        }
        at += 1;
    }
    Ok((wanted, prefixes))
}

/// Whether these options go together, and with what is on already.
fn check(session: &Session, wanted: &Tracking, prefixes: &[&[u8]]) -> Outcome {
    if !wanted.broadcast && !prefixes.is_empty() {
        return Err(Failure::text("ERR PREFIX option requires BCAST mode to be enabled"));
    }
    let before = session.tracking.as_deref();
    if before.is_some_and(|before| before.broadcast != wanted.broadcast) {
        return Err(Failure::text(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, \
             and then re-enabling it with a different mode.",
        ));
    }
    if wanted.broadcast && (wanted.opt_in || wanted.opt_out) {
        return Err(Failure::text("ERR OPTIN and OPTOUT are not compatible with BCAST"));
    }
    if wanted.opt_in && wanted.opt_out {
        return Err(Failure::text("ERR You can't specify both OPTIN mode and OPTOUT mode"));
    }
    if before.is_some_and(|before| {
        (wanted.opt_in && before.opt_out) || (wanted.opt_out && before.opt_in)
    }) {
        return Err(Failure::text(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, \
             and then re-enabling it with a different mode.",
        ));
    }
    let overlap = |a: &[u8], b: &[u8]| a.starts_with(b) || b.starts_with(a);
    let complain = |prefix: &[u8], what: &str, other: &[u8]| {
        Err(Failure::joined(&[
            b"ERR Prefix '",
            whole(prefix),
            b"' overlaps with ",
            what.as_bytes(),
            b" prefix '",
            whole(other),
            b"'. Prefixes for a single client must not overlap.",
        ]))
    };
    for (at, prefix) in prefixes.iter().enumerate() {
        let known = before.into_iter().flat_map(|before| &before.prefixes);
        for other in known {
            if overlap(prefix, other) {
                return complain(prefix, "an existing", other);
            }
        }
        for other in &prefixes[at + 1..] {
            if overlap(prefix, other) {
                return complain(prefix, "another provided", other);
            }
        }
    }
    Ok(())
}

pub fn caching(call: &mut Call<'_>) -> Outcome {
    let Some(tracking) = &mut call.session.tracking else {
        return Err(Failure::text(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN \
             or OPTOUT mode enabled",
        ));
    };
    if call.args.is(2, "yes") {
        if !tracking.opt_in {
            return Err(Failure::text(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
            ));
        }
    } else if call.args.is(2, "no") {
        if !tracking.opt_out {
            return Err(Failure::text(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
            ));
        }
    } else {
        return Err(Failure::SYNTAX);
    }
    tracking.caching = true;
    call.reply.ok();
    Ok(())
}

pub fn getredir(call: &mut Call<'_>) -> Outcome {
    let redirect = call.session.tracking.as_ref().map_or(-1, |tracking| tracking.redirect as i64);
    call.reply.integer(redirect);
    Ok(())
}

pub fn trackinginfo(call: &mut Call<'_>) -> Outcome {
    let off = Tracking::default();
    let is_on = call.session.tracking.is_some();
    let tracking = call.session.tracking.as_deref().unwrap_or(&off);
    let flags = [
        (if is_on { "on" } else { "off" }, true),
        ("bcast", tracking.broadcast),
        ("optin", tracking.opt_in),
        ("caching-yes", tracking.opt_in && tracking.caching),
        ("optout", tracking.opt_out),
        ("caching-no", tracking.opt_out && tracking.caching),
        ("noloop", tracking.no_loop),
        ("broken_redirect", tracking.is_broken),
    ];
    let flags: Vec<&str> = flags.iter().filter(|(_, set)| *set).map(|(flag, _)| *flag).collect();
    call.reply.map(3);
    call.reply.bulk(b"flags");
    call.reply.set(flags.len());
    flags.iter().for_each(|flag| call.reply.bulk(flag.as_bytes()));
    call.reply.bulk(b"redirect");
    call.reply.integer(if is_on { tracking.redirect as i64 } else { -1 });
    call.reply.bulk(b"prefixes");
    call.reply.array(tracking.prefixes.len());
    tracking.prefixes.iter().for_each(|prefix| call.reply.bulk(prefix));
    Ok(())
}
