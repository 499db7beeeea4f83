//! ACL: users are PostgreSQL's roles, and each may give every command. What a user may not do is
//! said by privileges in PostgreSQL, and changed there.

use super::docs::CATEGORIES;
use super::introspection::{named, subs};
use super::{docs::Shown, Command, Container, Flags, Sub};
use crate::call::{has_arity, whole, Call};
use crate::failure::{Failure, Outcome};

const ANY_TIME: Flags = Flags::NO_SCRIPT.and(Flags::LOADING).and(Flags::STALE);
const ADMIN: Flags = ANY_TIME.and(Flags::ADMIN);

pub const COMMANDS: &[Command] =
    &[Command::plain("acl", -2, Flags::CONTAINER.and(ANY_TIME), "server", acl)];

pub const ACL: Container = Container {
    name: "acl",
    subs: &[
        Sub::help("acl|help"),
        Sub::new("acl|cat", -2, ANY_TIME, cat),
        Sub::new("acl|deluser", -3, ADMIN, refuse),
        Sub::new("acl|dryrun", -4, ADMIN, dryrun),
        Sub::new("acl|genpass", -2, ANY_TIME, refuse),
        Sub::new("acl|getuser", 3, ADMIN, getuser),
        Sub::new("acl|list", 2, ADMIN, |call| list(call, true)),
        Sub::new("acl|load", 2, ADMIN, refuse),
        Sub::new("acl|log", -2, ADMIN, log),
        Sub::new("acl|save", 2, ADMIN, refuse),
        Sub::new("acl|setuser", -3, ADMIN, refuse),
        Sub::new("acl|users", 2, ADMIN, |call| list(call, false)),
        Sub::new("acl|whoami", 2, ANY_TIME, whoami),
    ],
    help: &[
        "CAT [<category>]",
        "    List all commands that belong to <category>, or all command categories",
        "    when no category is specified.",
        "DRYRUN <username> <command> [<arg> ...]",
        "    Returns whether the user can execute the given command without executing the command.",
        "GETUSER <username>",
        "    Get the user's details.",
        "LIST",
        "    Show users details in config file format.",
        "LOG [<count> | RESET]",
        "    Show the ACL log entries.",
        "USERS",
        "    List all the registered usernames.",
        "WHOAMI",
        "    Return the current connection username.",
    ],
};

fn acl(call: &mut Call<'_>) -> Outcome {
    ACL.run(call)
}

fn refuse(_call: &mut Call<'_>) -> Outcome {
    Err(Failure::text("ERR users are roles of PostgreSQL: CREATE ROLE, ALTER ROLE and DROP ROLE"))
}

/// Who it is, as ACL WHOAMI says.
fn me(call: &Call<'_>) -> String {
    match &*call.session.user {
        "" => "default".to_owned(),
        user => user.to_owned(),
    }
}

/// Users that are connected: PostgreSQL knows the others.
fn users(call: &Call<'_>) -> Vec<String> {
    let others = call.server.sessions.iter().map(|session| session.user.to_string());
    let mut users: Vec<String> = others.filter(|user| !user.is_empty()).collect();
    users.push(me(call));
    users.sort_unstable();
    users.dedup();
    users
}

fn is_user(call: &Call<'_>, name: &[u8]) -> bool {
    users(call).iter().any(|user| user.as_bytes() == name)
}

fn whoami(call: &mut Call<'_>) -> Outcome {
    let me = me(call);
    call.reply.bulk(me.as_bytes());
    Ok(())
}

fn list(call: &mut Call<'_>, details: bool) -> Outcome {
    let users = users(call);
    call.reply.array(users.len());
    for user in users {
        if details {
            call.reply.bulk(format!("user {user} on ~* &* +@all").as_bytes());
        } else {
            call.reply.bulk(user.as_bytes());
        }
    }
    Ok(())
}

fn getuser(call: &mut Call<'_>) -> Outcome {
    if !is_user(call, call.args.at(2)) {
        call.reply.null();
        return Ok(());
    }
    call.reply.map(6);
    call.reply.bulk(b"flags");
    call.reply.set(1);
    call.reply.bulk(b"on");
    call.reply.bulk(b"passwords");
    call.reply.array(0);
    for (name, value) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        call.reply.bulk(name.as_bytes());
        call.reply.bulk(value.as_bytes());
    }
    call.reply.bulk(b"selectors");
    call.reply.array(0);
    Ok(())
}

fn cat(call: &mut Call<'_>) -> Outcome {
    let Some(category) = call.args.get(2) else {
        call.reply.array(CATEGORIES.len());
        CATEGORIES.iter().for_each(|category| call.reply.bulk(category.as_bytes()));
        return Ok(());
    };
    if call.args.len() > 3 {
        return Err(super::container::unknown_or_arity("acl", call.args));
    }
    let category = category.to_ascii_lowercase();
    if !CATEGORIES.iter().any(|other| other.as_bytes() == category) {
        let category = whole(call.args.at(2));
        return Err(Failure::joined(&[b"ERR Unknown category '", category, b"'"]));
    }
    let is = |shown: &Shown| shown.categories().iter().any(|other| other.as_bytes() == category);
    let all =
        super::all().flat_map(|command| [Shown::Whole(command)].into_iter().chain(subs(command)));
    let names: Vec<&str> = all.filter(is).map(Shown::name).collect();
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name.as_bytes()));
    Ok(())
}

/// Nothing is refused here, so nothing is logged.
fn log(call: &mut Call<'_>) -> Outcome {
    match call.args.len() {
        2 => call.reply.array(0),
        3 if call.args.is(2, "reset") => call.reply.ok(),
        3 => {
            super::number::integer(call.args.at(2))?;
            call.reply.array(0);
        }
        _ => return Err(super::container::unknown_or_arity("acl", call.args)),
    }
    Ok(())
}

fn dryrun(call: &mut Call<'_>) -> Outcome {
    let user = call.args.at(2);
    if !is_user(call, user) {
        return Err(Failure::joined(&[b"ERR User '", whole(user), b"' not found"]));
    }
    let args = call.args.from(3);
    let Some(shown) = named(args) else {
        return Err(Failure::joined(&[b"ERR Command '", whole(args.at(0)), b"' not found"]));
    };
    if !has_arity(shown.arity(), args) {
        let name = shown.name();
        return Err(Failure::said(format!("ERR wrong number of arguments for '{name}' command")));
    }
    call.reply.ok();
    Ok(())
}
