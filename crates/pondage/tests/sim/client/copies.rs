//! COPY from a client, good and bad, in both protocols.

use rand::rngs::StdRng;
use rand::Rng;
use wire::pg::frontend::{self, Target};

use super::{Client, CopyPlan, Habits};

impl Client {
    pub(super) fn copy_in(&mut self, random: &mut StdRng, habits: &Habits) {
        let mark = self.next_mark();
        let (mut out, mut data) = (Vec::new(), Vec::new());
        let simple = random.random_bool(0.5);
        let mut text = format!("copyin '{mark}'");
        // libpq sends a Sync at once; PostgreSQL takes no notice of it while it copies.
        let needs_sync = !simple && random.random_bool(0.5);
        // With such a Sync a client can't know how many ReadyForQuery it will get.
        if (simple || needs_sync) && random.random_bool(0.15) {
            text = format!("copyearly '{mark}'");
        }
        if simple {
            frontend::put_query(&mut out, &text);
        } else {
            frontend::put_parse(&mut out, b"", text.as_bytes(), &[]);
            frontend::put_bind(&mut out, b"", b"", &[]);
            frontend::put_execute(&mut out, b"", 0);
            if needs_sync {
                frontend::put_flush(&mut out);
            } else {
                frontend::put_sync(&mut out);
            }
        }
        for row in 0..random.random_range(0..5) {
            let good = if random.random_bool(0.1) { "bad" } else { "row" };
            let length = if habits.big > 0 { random.random_range(0..habits.big) } else { 20 };
            let body = format!("{good} {row} {mark} {}\n", "x".repeat(length));
            data.push(b'd');
            data.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
            data.extend_from_slice(body.as_bytes());
            if random.random_bool(0.1) {
                frontend::put_flush(&mut data);
            }
        }
        if random.random_bool(0.2) {
            frontend::put_copy_fail(&mut data, "enough");
        } else {
            data.extend_from_slice(b"c\0\0\0\x04");
        }
        let mut after_error = Vec::new();
        if !simple {
            frontend::put_sync(&mut data);
            // The statement must not be found by a Bind that knows nothing of COPY.
            frontend::put_close(&mut data, Target::Statement, b"");
            frontend::put_sync(&mut data);
            if needs_sync {
                frontend::put_sync(&mut after_error);
            }
            frontend::put_close(&mut after_error, Target::Statement, b"");
            frontend::put_sync(&mut after_error);
        }
        if random.random_bool(0.2) {
            out.append(&mut data);
            self.send(out);
            return;
        }
        self.copy = Some(CopyPlan { data, after_error });
        self.send(out);
    }
}
