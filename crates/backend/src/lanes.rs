//! Statements that would wait for one another's row locks, and where they may be: of those with one
//! key at most one server has any at a time, so that none of them waits in PostgreSQL.
//!
//! A *lane* is all that waits, or is on its way, with one key; a key is a number that the caller
//! makes of what is locked. A statement may have several keys: it waits in the lane of its first,
//! and takes all or none.
//!
//! How it is driven: what arrives [`Lanes::wait`]s. For a server that has room the caller asks for
//! [`Lanes::load`], which gives it who rides now, lane by lane, and who is to travel alone. Whoever
//! has committed, or failed, is [`Lanes::done`]: locks are gone then, whether the commit is on disk
//! or not. Who gives up is taken out by [`Lanes::remove`]. A key that is wrong costs time and
//! nothing else: PostgreSQL's own locks are what keeps data right.

use std::collections::VecDeque;

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::moment::Moment;
use crate::reply::Owner;

/// What a statement locks, hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub u64);

/// Statements of different classes don't share a train.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Class {
    pub id: u8,
    /// Nor do those of different lanes.
    pub one_lane: bool,
}

/// Mostly one.
pub type Keys = SmallVec<[Key; 2]>;

/// Lanes that are looked at for one train.
const LOOKS_MAX: usize = 64;

/// Statements of one lane that are passed over because another key of theirs is not free.
const PASSED_MAX: usize = 16;

/// So many trains leave without a statement, then it travels alone. Several are loaded while the
/// one that has its other key is under way.
const PASSES_MAX: u8 = 4;

/// A statement that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Car {
    pub owner: Owner,
    pub arrived: Moment,
    /// None: it conflicts with nobody, as far as is known.
    pub keys: Keys,
    pub class: Class,
    /// So many trains left without it, because another of its keys was not free.
    passed: u8,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Car>,
    /// Whose server has the key.
    server: Option<u32>,
    /// Statements that are on their way with the key.
    riding: u32,
    /// It is in [`Lanes::ready`].
    ready: bool,
    /// It is in [`Lanes::parked`].
    parked: bool,
}

/// What is loaded.
pub struct Train<'a> {
    /// Who rides, in order.
    pub rides: &'a mut Vec<Owner>,
    /// Who has been passed over too often, because it can't have all of its keys.
    pub alone: &'a mut Vec<Owner>,
    /// Somebody rides; whether there is room for more.
    pub goes_on: &'a mut dyn FnMut(Owner) -> bool,
    pub has_room: bool,
    /// Takes the keys of a statement where they may be taken elsewhere too. False: they are; the
    /// lane is [`Lanes::is_parked`] then.
    pub reserve: &'a mut dyn FnMut(&[Key]) -> bool,
    /// Of all who ride; none while nobody does.
    pub class: Option<Class>,
}

impl Train<'_> {
    /// Whether a statement may ride: in the lane that is being loaded, if that is not the first.
    fn takes(&self, class: Class, first_lane: bool) -> bool {
        self.class.is_none_or(|of| of == class && (first_lane || !of.one_lane))
    }

    fn take(&mut self, car: &Car) {
        self.class = Some(car.class);
        self.rides.push(car.owner);
        self.has_room = (self.goes_on)(car.owner);
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Lanes {
    lanes: HashMap<Key, Lane, foldhash::fast::RandomState>,
    /// Those without a key.
    free: VecDeque<Car>,
    /// Lanes in which somebody waits, and whose key was free when they got here.
    ready: VecDeque<Key>,
    /// Lanes whose next statement needs a key that is taken elsewhere.
    parked: Vec<Key>,
    waiting: usize,
}

impl Lanes {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting
    }

    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Some who wait or are on their way have keys.
    pub fn has_keys(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// All who wait, in no particular order.
    pub fn waiting(&self) -> impl Iterator<Item = Owner> + '_ {
        let lanes = self.lanes.values().flat_map(|lane| lane.waiting.iter());
        self.free.iter().chain(lanes).map(|car| car.owner)
    }

    /// Somebody who might be loaded, and has waited for long. None: all wait for others of their
    /// lanes.
    pub fn first(&self) -> Option<(Owner, Moment)> {
        let lane = self.ready.iter().find_map(|key| self.lanes.get(key)?.waiting.front());
        let cars = self.free.front().into_iter().chain(lane);
        cars.min_by_key(|car| car.arrived).map(|car| (car.owner, car.arrived))
    }

    /// A statement has arrived, or comes back because it came to nothing: its place is that of its
    /// arrival.
    pub fn wait(&mut self, owner: Owner, arrived: Moment, keys: Keys, class: Class) {
        self.waiting += 1;
        let queue = match keys.first() {
            None => &mut self.free,
            Some(key) => {
                let lane = self.lanes.entry(*key).or_default();
                let waits = lane.server.is_some() || lane.parked;
                if !waits && !std::mem::replace(&mut lane.ready, true) {
                    self.ready.push_back(*key);
                }
                &mut lane.waiting
            }
        };
        let place = match queue.back() {
            Some(last) if last.arrived > arrived => {
                queue.partition_point(|car| car.arrived <= arrived)
            }
            _ => queue.len(),
        };
        queue.insert(place, Car { owner, arrived, keys, class, passed: 0 });
    }

    /// Who waits no more. `keys` are those that it waits with. False: it did not wait.
    pub fn remove(&mut self, owner: Owner, keys: &[Key]) -> bool {
        let queue = match keys.first() {
            None => Some(&mut self.free),
            Some(key) => self.lanes.get_mut(key).map(|lane| &mut lane.waiting),
        };
        let Some(queue) = queue else { return false };
        let Some(place) = queue.iter().position(|car| car.owner == owner) else { return false };
        queue.remove(place);
        self.waiting -= 1;
        if let Some(key) = keys.first() {
            self.tidy(*key);
        }
        true
    }

    /// Fills a train for this server: those without a key, then lane after lane.
    pub fn load(&mut self, server: u32, train: &mut Train<'_>) {
        while train.has_room {
            // Of each of them nobody knows which lane is its.
            if !self.free.front().is_some_and(|car| train.takes(car.class, false)) {
                break;
            }
            let Some(car) = self.free.pop_front() else { break };
            self.waiting -= 1;
            train.take(&car);
        }
        for _ in 0..self.ready.len().min(LOOKS_MAX) {
            if !train.has_room {
                break;
            }
            let Some(key) = self.ready.pop_front() else { break };
            self.load_lane(key, server, train);
            self.make_ready(key);
        }
    }

    fn load_lane(&mut self, key: Key, server: u32, train: &mut Train<'_>) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.ready = false;
        if lane.server.is_some_and(|other| other != server) {
            // Another train has taken the key for a statement of another lane.
            return;
        }
        let first_lane = train.rides.is_empty();
        let mut passed = 0;
        while train.has_room && passed < PASSED_MAX {
            let Some(lane) = self.lanes.get_mut(&key) else { return };
            let takes = |car: &Car| train.takes(car.class, first_lane);
            if !lane.waiting.get(passed).is_some_and(takes) {
                return;
            }
            let Some(mut car) = lane.waiting.remove(passed) else { return };
            let free = |key: &Key| {
                let holder = self.lanes.get(key).and_then(|lane| lane.server);
                holder.is_none_or(|holder| holder == server)
            };
            if car.keys[1..].iter().all(free) {
                if !(train.reserve)(&car.keys) {
                    return self.park(key, passed, car);
                }
                self.waiting -= 1;
                train.take(&car);
                self.hold(server, &car.keys);
            } else if car.passed >= PASSES_MAX {
                self.waiting -= 1;
                train.alone.push(car.owner);
            } else {
                car.passed += 1;
                if let Some(lane) = self.lanes.get_mut(&key) {
                    lane.waiting.insert(passed, car);
                }
                passed += 1;
            }
        }
    }

    fn park(&mut self, key: Key, place: usize, car: Car) {
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        lane.waiting.insert(place, car);
        if !std::mem::replace(&mut lane.parked, true) {
            self.parked.push(key);
        }
    }

    /// Some wait for keys that are taken elsewhere.
    pub fn is_parked(&self) -> bool {
        !self.parked.is_empty()
    }

    /// Those keys may be free now.
    pub fn unpark(&mut self) {
        for key in std::mem::take(&mut self.parked) {
            if let Some(lane) = self.lanes.get_mut(&key) {
                lane.parked = false;
            }
            self.make_ready(key);
        }
    }

    fn hold(&mut self, server: u32, keys: &[Key]) {
        for key in keys {
            let lane = self.lanes.entry(*key).or_default();
            lane.server = Some(server);
            lane.riding += 1;
        }
    }

    /// A statement that rode with these keys holds no lock any more.
    pub fn done(&mut self, keys: &[Key]) {
        for key in keys {
            let Some(lane) = self.lanes.get_mut(key) else { continue };
            lane.riding = lane.riding.saturating_sub(1);
            if lane.riding == 0 {
                lane.server = None;
                self.make_ready(*key);
            }
        }
    }

    /// The lane is looked at for the next train, if somebody waits in it and its key is free.
    fn make_ready(&mut self, key: Key) {
        self.tidy(key);
        let Some(lane) = self.lanes.get_mut(&key) else { return };
        if lane.server.is_none() && !lane.waiting.is_empty() && !lane.ready && !lane.parked {
            lane.ready = true;
            self.ready.push_back(key);
        }
    }

    /// Forgets a lane that nobody uses. Its place in `ready`, if it has one, goes when its turn
    /// comes.
    fn tidy(&mut self, key: Key) {
        let unused = |lane: &Lane| {
            lane.waiting.is_empty() && lane.riding == 0 && !lane.ready && !lane.parked
        };
        if self.lanes.get(&key).is_some_and(unused) {
            self.lanes.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys(keys: &[u64]) -> Keys {
        keys.iter().map(|key| Key(*key)).collect()
    }

    const PLAIN: Class = Class { id: 0, one_lane: false };
    const SECLUDED: Class = Class { id: 1, one_lane: true };

    fn load(lanes: &mut Lanes, server: u32, most: usize) -> (Vec<u32>, Vec<u32>) {
        let (mut rides, mut alone) = (Vec::new(), Vec::new());
        let mut left = most;
        let mut goes_on = |_| {
            left -= 1;
            left > 0
        };
        let mut train = Train {
            rides: &mut rides,
            alone: &mut alone,
            goes_on: &mut goes_on,
            has_room: most > 0,
            reserve: &mut |_| true,
            class: None,
        };
        lanes.load(server, &mut train);
        let numbers = |owners: Vec<Owner>| owners.iter().map(|owner| owner.0).collect();
        (numbers(rides), numbers(alone))
    }

    fn of(cars: &[&[u64]]) -> Lanes {
        let mut lanes = Lanes::default();
        for (at, of) in cars.iter().enumerate() {
            lanes.wait(Owner(at as u32), Moment(at as u64), keys(of), PLAIN);
        }
        lanes
    }

    #[test]
    fn a_train_has_whole_lanes_and_another_has_others() {
        let mut lanes = of(&[&[1], &[2], &[1], &[3], &[], &[2], &[1]]);
        assert_eq!(load(&mut lanes, 0, 4).0, [4, 0, 2, 6]);
        assert_eq!(load(&mut lanes, 1, 9).0, [1, 5, 3]);
        assert!(lanes.is_empty());
        lanes.wait(Owner(7), Moment(7), keys(&[1]), PLAIN);
        assert_eq!(load(&mut lanes, 1, 9).0, [], "its key is on another server");
        for _ in 0..3 {
            lanes.done(&keys(&[1]));
        }
        assert_eq!(load(&mut lanes, 1, 9).0, [7]);
    }

    #[test]
    fn what_does_not_fit_comes_with_the_next_train() {
        let mut lanes = of(&[&[1], &[1], &[1], &[2]]);
        assert_eq!(load(&mut lanes, 0, 2).0, [0, 1]);
        assert_eq!(lanes.first(), Some((Owner(3), Moment(3))), "the lane is under way");
        assert_eq!(load(&mut lanes, 1, 9).0, [3]);
        assert_eq!(lanes.first(), None);
        lanes.done(&keys(&[1]));
        lanes.done(&keys(&[1]));
        assert_eq!(load(&mut lanes, 1, 9).0, [2], "the other one had the time to arrive");
    }

    #[test]
    fn several_keys_are_had_together_or_not_at_all() {
        let mut lanes = of(&[&[1], &[2, 1], &[2]]);
        assert_eq!(load(&mut lanes, 0, 1).0, [0]);
        assert_eq!(load(&mut lanes, 1, 9).0, [2], "the others of its lane pass by");
        lanes.done(&keys(&[1]));
        assert_eq!(load(&mut lanes, 0, 9).0, [], "now the first of its keys is away");
        lanes.done(&keys(&[2]));
        assert_eq!(load(&mut lanes, 0, 9).0, [1]);
        lanes.wait(Owner(3), Moment(3), keys(&[1]), PLAIN);
        assert_eq!(load(&mut lanes, 1, 9).0, [], "it is taken by who waits elsewhere");
        assert_eq!(load(&mut lanes, 0, 9).0, [], "and not looked at before it is free");
        lanes.done(&keys(&[2, 1]));
        assert_eq!(load(&mut lanes, 1, 9).0, [3]);
    }

    #[test]
    fn who_is_passed_over_too_often_travels_alone() {
        let mut lanes = of(&[&[1], &[2, 1]]);
        assert_eq!(load(&mut lanes, 0, 1).0, [0]);
        for _ in 0..PASSES_MAX {
            assert_eq!(load(&mut lanes, 1, 9), (vec![], vec![]));
        }
        assert_eq!(load(&mut lanes, 1, 9), (vec![], vec![1]));
        assert!(lanes.is_empty());
    }

    #[test]
    fn who_comes_back_has_its_old_place() {
        let mut lanes = of(&[&[1], &[1], &[1]]);
        assert_eq!(load(&mut lanes, 0, 1).0, [0]);
        lanes.done(&keys(&[1]));
        lanes.wait(Owner(0), Moment(0), keys(&[1]), PLAIN);
        assert!(lanes.remove(Owner(1), &keys(&[1])));
        assert!(!lanes.remove(Owner(1), &keys(&[1])));
        assert_eq!(load(&mut lanes, 0, 9).0, [0, 2]);
    }

    #[test]
    fn a_lane_whose_key_is_taken_elsewhere_is_parked() {
        let mut lanes = of(&[&[1], &[2], &[1]]);
        let (mut rides, mut alone) = (Vec::new(), Vec::new());
        let mut train = Train {
            rides: &mut rides,
            alone: &mut alone,
            goes_on: &mut |_| true,
            has_room: true,
            reserve: &mut |keys| keys[0] != Key(1),
            class: None,
        };
        lanes.load(0, &mut train);
        assert_eq!((rides, alone.len()), (vec![Owner(1)], 0));
        assert!(lanes.is_parked());
        assert_eq!(lanes.first(), None);
        lanes.wait(Owner(3), Moment(3), keys(&[1]), PLAIN);
        assert_eq!(load(&mut lanes, 1, 9).0, [], "not before it is said to be free");
        lanes.unpark();
        assert_eq!(load(&mut lanes, 1, 9).0, [0, 2, 3]);
    }

    fn class_of(owner: u32) -> Class {
        if owner % 4 == 0 {
            SECLUDED
        } else {
            PLAIN
        }
    }

    #[test]
    fn classes_do_not_mix_and_some_stay_in_their_lane() {
        let mut lanes = Lanes::default();
        for (owner, of, class) in
            [(0, 1, PLAIN), (1, 2, SECLUDED), (2, 1, SECLUDED), (3, 1, PLAIN), (4, 2, SECLUDED)]
        {
            lanes.wait(Owner(owner), Moment(u64::from(owner)), keys(&[of]), class);
        }
        assert_eq!(load(&mut lanes, 0, 9).0, [0], "behind it comes one of another class");
        assert_eq!(load(&mut lanes, 1, 9).0, [1, 4]);
        lanes.done(&keys(&[1]));
        assert_eq!(load(&mut lanes, 0, 9).0, [2]);
        lanes.wait(Owner(5), Moment(5), keys(&[]), SECLUDED);
        lanes.wait(Owner(6), Moment(6), keys(&[]), SECLUDED);
        assert_eq!(load(&mut lanes, 2, 9).0, [5], "nobody knows whose rows it locks");
    }

    #[derive(Debug, Clone)]
    enum Step {
        Wait(Vec<u64>),
        Load {
            server: u32,
            most: usize,
        },
        /// The oldest or the youngest of what rides.
        Done {
            oldest: bool,
        },
        Remove(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let of = proptest::collection::vec(1_u64..6, 0..3).prop_map(|mut keys| {
            keys.dedup();
            keys
        });
        prop_oneof![
            3 => of.prop_map(Step::Wait),
            2 => (0_u32..3, 1_usize..5).prop_map(|(server, most)| Step::Load { server, most }),
            2 => any::<bool>().prop_map(|oldest| Step::Done { oldest }),
            1 => any::<usize>().prop_map(Step::Remove),
        ]
    }

    proptest! {
        /// No key is on two servers, nobody is lost, and in the end all have gone.
        #[test]
        fn a_key_is_on_one_server(steps in proptest::collection::vec(step(), 1..80)) {
            let mut lanes = Lanes::default();
            let mut all: Vec<Keys> = Vec::new();
            let mut waiting: Vec<u32> = Vec::new();
            let mut riding: Vec<(u32, u32)> = Vec::new();
            let end = (0..400).map(|at| match at % 4 {
                3 => Step::Done { oldest: true },
                server => Step::Load { server, most: 3 },
            });
            for step in steps.into_iter().chain(end) {
                match step {
                    Step::Wait(of) => {
                        let owner = all.len() as u32;
                        all.push(keys(&of));
                        let class = class_of(owner);
                        lanes.wait(Owner(owner), Moment(u64::from(owner)), keys(&of), class);
                        waiting.push(owner);
                    }
                    Step::Load { server, most } => {
                        let (rides, alone) = load(&mut lanes, server, most);
                        prop_assert!(rides.len() <= most);
                        for owner in &rides {
                            let class = class_of(rides[0]);
                            prop_assert_eq!(class_of(*owner), class);
                            let first = all[rides[0] as usize].first();
                            let alike = first.is_some() && all[*owner as usize].first() == first;
                            prop_assert!(alike || !class.one_lane || rides.len() == 1);
                        }
                        waiting.retain(|owner| !rides.contains(owner) && !alone.contains(owner));
                        for owner in rides {
                            for (other, elsewhere) in &riding {
                                let shared = |key| all[*other as usize].contains(key);
                                prop_assert!(
                                    *elsewhere == server || !all[owner as usize].iter().any(shared),
                                    "{owner} and {other} are on two servers"
                                );
                            }
                            riding.push((owner, server));
                        }
                    }
                    Step::Done { oldest } if !riding.is_empty() => {
                        let at = if oldest { 0 } else { riding.len() - 1 };
                        lanes.done(&all[riding.remove(at).0 as usize]);
                    }
                    Step::Done { .. } => {}
                    Step::Remove(at) if !waiting.is_empty() => {
                        let owner = waiting.remove(at % waiting.len());
                        prop_assert!(lanes.remove(Owner(owner), &all[owner as usize]));
                    }
                    Step::Remove(_) => {}
                }
                prop_assert_eq!(lanes.len(), waiting.len());
                prop_assert_eq!(lanes.waiting().count(), waiting.len());
            }
            prop_assert!(lanes.is_empty(), "{:?} wait for ever", waiting);
            riding.drain(..).for_each(|(owner, _)| lanes.done(&all[owner as usize]));
            // What is left is at most a place whose turn has not come.
            load(&mut lanes, 0, 1);
            prop_assert!(lanes.lanes.is_empty(), "{:?}", lanes.lanes);
        }
    }
}
