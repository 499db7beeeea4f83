//! What Redis has replied, line by line: a command, then its reply, indented, as
//! [`redis::reply::Recorded`] prints it in RESP3, where all nulls are one.

use crate::rig::Rig;

/// Runs the commands: as they are, and again with nothing in memory before each of them.
#[track_caller]
pub fn check(text: &str) {
    for forgetful in [false, true] {
        let mut rig = Rig::new();
        rig.engine.session(rig.conn).unwrap().protocol = 3;
        let mut lines = text.lines();
        while let (Some(command), Some(reply)) = (lines.next(), lines.next()) {
            if forgetful {
                rig.forget();
            }
            let said = rig.run(command).replace("(nil array)", "(nil)");
            assert_eq!(said, reply.trim_start(), "{command}, forgetful: {forgetful}");
        }
    }
}
