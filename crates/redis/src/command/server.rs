//! MONITOR.

use super::{Command, Flags};
use crate::call::Call;
use crate::failure::{Failure, Outcome};

const FLAGS: Flags = Flags::ADMIN.and(Flags::NO_SCRIPT).and(Flags::LOADING).and(Flags::STALE);

pub const COMMANDS: &[Command] = &[Command::plain("monitor", 1, FLAGS, "server", monitor)];

fn monitor(call: &mut Call<'_>) -> Outcome {
    if call.nested {
        return Err(Failure::text("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    // One that monitors already is not even answered.
    if !std::mem::replace(&mut call.session.monitors, true) {
        call.server.monitors.add(call.session.conn);
        call.reply.ok();
    }
    Ok(())
}
