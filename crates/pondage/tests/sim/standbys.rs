//! Standbys, and how far each has come: for scripts, since they have no data of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use pondage::control::messages::ToWorker;
use pondage::hosts::{HostState, Replicas, Role};

use crate::world::World;

/// The first host is the primary.
pub fn hosts(standbys: usize) -> String {
    if standbys == 0 {
        return "host = \"127.0.0.1\"\n".to_owned();
    }
    let list: Vec<String> = (0..=standbys).map(|place| format!("127.0.0.{}", place + 1)).collect();
    format!(
        "host = \"{}\"\ntarget_session_attrs = \"primary\"\nsplit_reads = true\n",
        list.join(",")
    )
}

/// What the prober of the database would tell.
pub struct Standbys(Arc<Replicas>);

impl Standbys {
    pub fn host(&self, place: usize) -> &HostState {
        self.0.hosts[place].as_ref().expect("a host with one address")
    }

    /// A probe begins and is answered: these have all that was committed before it.
    pub fn have_all(&self, places: &[usize]) {
        let probe = self.0.probes.fetch_add(1, Ordering::AcqRel) + 1;
        places.iter().for_each(|place| self.host(*place).set_covers(probe));
    }
}

impl World {
    /// The planes hear of the hosts, which have begun to live.
    pub fn tell_of_hosts(&mut self) {
        let pool = self.configs[0].pool("db0", "ann").expect("a database");
        let list = pool.upstream.hosts();
        let host = |place: usize| {
            let state = HostState::default();
            state.set_role(if place == 0 { Role::Primary } else { Role::Standby });
            state.begin_life();
            Some(Arc::new(state))
        };
        let hosts = (0..list.len()).map(host).collect();
        let replicas = Arc::new(Replicas { list, probes: Arc::new(AtomicU64::new(0)), hosts });
        for plane in &mut self.planes {
            plane.control(ToWorker::HostsChanged { replicas: Some(replicas.clone()) });
        }
        self.standbys = Some(Standbys(replicas));
    }

    /// In which of its lives the host is that a connection is to.
    pub(crate) fn life(&self, standby: Option<usize>) -> u64 {
        let host = self.standbys.as_ref().zip(standby);
        host.map_or(0, |(standbys, place)| standbys.host(place).life())
    }

    /// Messages that the primary has read, and each standby.
    pub fn read_by(&self) -> Vec<u64> {
        let mut read = vec![0; self.plan.standbys + 1];
        for server in &self.servers {
            read[server.standby.unwrap_or(0)] += server.model.taken;
        }
        read
    }
}
