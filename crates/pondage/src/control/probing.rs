//! The prober: what each host of a list is, whether it answers, and how far it is in the log.
//!
//! Each host of a list that a configured database has, and that somebody has opened a connection
//! to, is asked every `host_check_interval` on one connection that is kept, as the pool that came
//! last logs in. It is asked at once when that connection ends, and when a worker has seen what a
//! host says that is no longer what it was. One that does not answer is banned, and asked less
//! often. When a host has become another thing, workers close what they have there and is no longer
//! fit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, sleep_until, timeout, Instant};
use wire::pg::backend::{self as messages, tag};
use wire::pg::frontend;

use super::messages::{OpenKind, ToWorker};
use super::open::Session;
use super::spots::{List, Spot};
use super::Control;
use crate::config::Config;

/// Whether there is another list to probe, or an address more, is looked at so often.
const LOOK: Duration = Duration::from_secs(1);

/// A probe takes no longer, even if connect_timeout is longer.
const PROBE_MAX: Duration = Duration::from_secs(5);

/// A host is not asked again sooner, whoever wishes it.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// One that does not answer is asked at least so often, unless `host_check_interval` is longer.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Of functions that PostgreSQL has since version 10.
const QUESTION: &str = "SELECT pg_catalog.pg_is_in_recovery(), \
    pg_catalog.current_setting('default_transaction_read_only'), \
    pg_catalog.pg_wal_lsn_diff(CASE WHEN pg_catalog.pg_is_in_recovery() \
      THEN pg_catalog.pg_last_wal_replay_lsn() \
      ELSE pg_catalog.pg_current_wal_insert_lsn() END, '0/0'), \
    extract(epoch FROM pg_catalog.clock_timestamp() \
      - pg_catalog.pg_last_xact_replay_timestamp()), \
    pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_receive_lsn(), '0/0'), \
    CASE WHEN pg_catalog.pg_is_in_recovery() \
      THEN (SELECT timeline_id::pg_catalog.text FROM pg_catalog.pg_control_checkpoint()) \
      ELSE ('x' || pg_catalog.substr( \
        pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 1, 8) \
        )::pg_catalog.bit(32)::pg_catalog.int4::pg_catalog.text END";

/// What a host has said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub standby: bool,
    pub read_only: bool,
    /// What a standby has replayed; where a primary writes.
    pub position: u64,
    /// How old the last transaction is that a standby has replayed.
    pub delay: Option<Duration>,
    /// What a standby has received.
    pub received: u64,
    /// Of the primary's log; of a standby's last checkpoint.
    pub timeline: u32,
    pub at: SystemTime,
    pub took: Duration,
}

impl Control {
    /// Probes until it is dropped.
    pub(super) async fn keep_probing(self: Arc<Control>) {
        let mut running = Running::default();
        loop {
            let wanted = probed_lists(&self.config.load());
            running.0.retain(|(list, _), probe| {
                let stays = wanted.contains_key(list) && !probe.is_finished();
                if !stays {
                    probe.abort();
                }
                stays
            });
            for (list, interval) in wanted {
                let Some((_, spots, doubts)) = self.dialer.spots.probed(&list) else { continue };
                for spot in spots {
                    let key = (list.clone(), Arc::as_ptr(&spot.state) as usize);
                    running.0.entry(key).or_insert_with(|| {
                        let probe = Probe {
                            control: self.clone(),
                            list: list.clone(),
                            spot,
                            interval,
                            session: None,
                            number: 0,
                            told: false,
                        };
                        tokio::spawn(probe.run(doubts.clone())).abort_handle()
                    });
                }
            }
            sleep(LOOK).await;
        }
    }

    /// A worker has seen that a host may be another thing than it was.
    pub(super) fn doubt(&self, config: &crate::config::PoolConfig) {
        self.dialer.spots.doubt(&config.upstream);
    }
}

/// Probes that run, by list and host.
#[derive(Default)]
struct Running(HashMap<(List, usize), AbortHandle>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.values().for_each(AbortHandle::abort);
    }
}

/// The lists of configured databases, with how often they are probed: as often as the one that wants
/// it most.
fn probed_lists(config: &Config) -> HashMap<List, Duration> {
    let mut lists: HashMap<List, Duration> = HashMap::new();
    for database in config.databases.values() {
        let several = &database.upstream.several;
        if several.others.is_empty() || several.check.is_zero() {
            continue;
        }
        let interval = lists.entry(database.upstream.hosts()).or_insert(several.check);
        *interval = several.check.min(*interval);
    }
    lists
}

/// One host.
struct Probe {
    control: Arc<Control>,
    list: List,
    spot: Spot,
    interval: Duration,
    session: Option<Session>,
    /// Of the last probe that was answered.
    number: u64,
    /// Workers know that there is such a host.
    told: bool,
}

impl Probe {
    /// Until the spot is none of its list any more.
    async fn run(mut self, mut doubts: watch::Receiver<u64>) {
        loop {
            doubts.mark_unchanged();
            let began = Instant::now();
            let Some(failures) = self.ask().await else { return };
            let pause = self.interval.saturating_mul(1 << failures.min(6));
            let pause = pause.min(PAUSE_MAX.max(self.interval)).max(PAUSE_MIN);
            let until = Instant::now() + pause;
            match &mut self.session {
                // An answer to no question: it ends, or its connection does.
                Some(session) => tokio::select! {
                    () = sleep_until(until) => {}
                    _ = doubts.changed() => {}
                    _ = session.message() => {}
                },
                None if failures == 0 => tokio::select! {
                    () = sleep_until(until) => {}
                    _ = doubts.changed() => {}
                },
                None => sleep_until(until).await,
            }
            sleep_until(began + PAUSE_MIN).await;
        }
    }

    /// Asks once, on a new connection if the one that was kept is gone. How often in a row there was
    /// no answer; none: there is nobody to ask any more.
    async fn ask(&mut self) -> Option<u32> {
        let spots = &self.control.dialer.spots;
        let asker = spots.asker(&self.list, &self.spot)?;
        let upstream = &asker.config.upstream;
        let limit = match asker.config.connect_timeout {
            Duration::ZERO => PROBE_MAX,
            limit => limit.min(PROBE_MAX),
        };
        self.control.dialer.resolve(&asker.config).await;
        let mut asked = Err("it was not asked".to_owned());
        // The second time on a new connection.
        for _ in 0..2 {
            let kept = self.session.take();
            let new = kept.is_none();
            let began = Instant::now();
            let (number, own) = (spots.begin_probe(&self.list), self.spot.state.begin_probe());
            asked = match timeout(limit, self.answer(&asker, kept)).await {
                Ok(answered) => answered,
                Err(_) => Err(format!("no answer within {} ms", limit.as_millis())),
            };
            if let Ok((_, answer)) = &mut asked {
                answer.took = began.elapsed();
                self.spot.state.probe_answered(own);
                self.number = number;
            }
            if asked.is_ok() || new {
                break;
            }
        }
        match asked {
            Ok((session, answer)) => {
                self.session = Some(session);
                let first = !std::mem::replace(&mut self.told, true);
                if spots.answered(upstream, &self.spot, self.number, answer) || first {
                    self.tell_workers();
                }
                Some(0)
            }
            Err(why) => Some(spots.unanswered(upstream, &self.spot, &why, Instant::now()).max(1)),
        }
    }

    async fn answer(
        &self,
        asker: &super::spots::Asker,
        kept: Option<Session>,
    ) -> Result<(Session, Answer), String> {
        let mut session = match kept {
            Some(session) => session,
            None => {
                let mut here = asker.config.clone();
                here.upstream = here.upstream.at(self.spot.place);
                let (address, proven) = (self.spot.address, asker.proven.clone());
                let dialer = &self.control.dialer;
                let opened = dialer.start_at(&here, address, proven, &OpenKind::Probe).await;
                // What was replayed in an earlier life may have to be replayed again.
                self.spot.state.begin_life();
                self.spot.state.set_covers(0);
                opened.map_err(|error| error.message)?
            }
        };
        let answer = question(&mut session).await?;
        Ok((session, answer))
    }

    /// What they have there may be no longer fit.
    fn tell_workers(&self) {
        let replicas = self.control.dialer.spots.replicas(&self.list).map(Arc::new);
        for worker in &self.control.workers {
            worker.send(ToWorker::HostsChanged { replicas: replicas.clone() });
        }
    }
}

async fn question(session: &mut Session) -> Result<Answer, String> {
    let mut out = Vec::new();
    frontend::put_query(&mut out, QUESTION);
    session.send(&out).await.map_err(|error| error.to_string())?;
    let mut answer = Err("it gave no answer".to_owned());
    loop {
        let (kind, body) = session.message().await.map_err(|failure| failure.to_string())?;
        match kind {
            tag::DATA_ROW => answer = read(body).ok_or_else(|| "its answer is odd".to_owned()),
            tag::ERROR => {
                let fields = messages::error_fields(body).ok();
                let message = fields.and_then(|fields| fields.message().map(str::to_owned));
                answer = Err(message.unwrap_or_default());
            }
            tag::READY_FOR_QUERY => return answer,
            _ => {}
        }
    }
}

/// Source: [`QUESTION`].
fn read(row: &[u8]) -> Option<Answer> {
    let values = messages::data_row(row).ok()?;
    let text = |at: usize| std::str::from_utf8(values.get(at).copied().flatten()?).ok();
    let delay = text(3).and_then(|delay| delay.parse::<f64>().ok());
    Some(Answer {
        standby: text(0)? == "t",
        read_only: text(1)? == "on",
        // A standby that has replayed nothing yet has none.
        position: text(2).map_or(Some(0), |position| position.parse().ok())?,
        received: text(4).map_or(Some(0), |position| position.parse().ok())?,
        timeline: text(5).map_or(Some(0), |timeline| timeline.parse().ok())?,
        delay: delay.and_then(|delay| Duration::try_from_secs_f64(delay.max(0.0)).ok()),
        at: SystemTime::now(),
        took: Duration::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &[Option<&str>]) -> Vec<u8> {
        let mut out = Vec::new();
        let values: Vec<Option<&[u8]>> =
            values.iter().map(|value| value.map(str::as_bytes)).collect();
        messages::put_data_row(&mut out, &values);
        out.split_off(wire::pg::HEADER_BYTES)
    }

    #[test]
    fn answers_are_read() {
        let standby = row(&[
            Some("t"),
            Some("off"),
            Some("25165912"),
            Some("1.5"),
            Some("25165999"),
            Some("2"),
        ]);
        let answer = read(&standby).expect("an answer");
        assert!(answer.standby && !answer.read_only);
        assert_eq!((answer.position, answer.received), (25_165_912, 25_165_999));
        assert_eq!(answer.timeline, 2);
        assert_eq!(answer.delay, Some(Duration::from_millis(1500)));
        let fresh = read(&row(&[Some("t"), Some("off"), None, None])).expect("an answer");
        assert_eq!((fresh.position, fresh.delay), (0, None), "it has replayed nothing");
        assert!(read(&row(&[Some("t")])).is_none());
        assert!(read(&row(&[Some("t"), Some("off"), Some("x"), None])).is_none());
        // Clocks differ.
        let early = read(&row(&[Some("t"), Some("off"), Some("1"), Some("-3")])).expect("one");
        assert_eq!(early.delay, Some(Duration::ZERO));
    }

    #[test]
    fn lists_are_probed_as_often_as_the_one_who_wants_it_most() {
        let text = "[databases.a]\nhost = \"x,y\"\nhost_check_interval = \"3s\"\n\
             [databases.b]\nhost = \"x,y\"\nhost_check_interval = \"2s\"\n\
             [databases.c]\nhost = \"x\"\n[databases.d]\nhost = \"v,w\"\n\
             host_check_interval = 0\n";
        let config = Config::from_text(text).unwrap_or_else(|report| panic!("{report}"));
        let lists = probed_lists(&config);
        assert_eq!(lists.into_values().collect::<Vec<_>>(), [Duration::from_secs(2)]);
    }
}
