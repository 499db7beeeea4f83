//! Commands of positions, which are scores of sorted sets.

use hashbrown::HashMap;

use super::number::integer;
use super::zset_ranges::store;
use super::zsets::{add, score, Adding};
use super::{Command, Flags, Keys};
use crate::args::Args;
use crate::call::{whole, Call};
use crate::double;
use crate::failure::{Failure, Outcome};
use crate::geohash::{self, Point, Shape, LATITUDE_MAX, LONGITUDE_MAX};
use crate::reply::Reply;
use crate::value::Zset;

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE.and(Flags::DENY_OOM);
const ONE: Keys = Keys::Range(1, 1, 1);

pub const COMMANDS: &[Command] = &[
    of("geoadd", -5, WRITE, ONE, geoadd),
    of("geopos", -2, READ, ONE, geopos),
    of("geodist", -4, READ, ONE, geodist),
    of("geohash", -2, READ, ONE, geohash),
    of("georadius", -6, WRITE.and(Flags::MOVABLE_KEYS), Keys::By(|args| stored(args, 6)), |call| {
        radius(call, From::Position, true)
    }),
    of(
        "georadiusbymember",
        -5,
        WRITE.and(Flags::MOVABLE_KEYS),
        Keys::By(|args| stored(args, 5)),
        |call| radius(call, From::Member, true),
    ),
    of("georadius_ro", -6, READ, ONE, |call| radius(call, From::Position, false)),
    of("georadiusbymember_ro", -5, READ, ONE, |call| radius(call, From::Member, false)),
    of("geosearch", -7, READ, ONE, |call| search(call, false)),
    of("geosearchstore", -8, WRITE, Keys::Range(1, 2, 1), |call| search(call, true)),
];

const fn of(
    name: &'static str,
    arity: i32,
    flags: Flags,
    keys: Keys,
    run: fn(&mut Call<'_>) -> Outcome,
) -> Command {
    Command { name, arity, flags, keys, group: "geo", run }
}

/// The key, and the one that GEORADIUS stores to; options begin at `from`.
fn stored(args: Args<'_>, from: usize) -> Option<Vec<usize>> {
    let stores = |at: &usize| args.is(*at, "store") || args.is(*at, "storedist");
    let target = (from..args.len().saturating_sub(1)).rev().find(stores).map(|at| at + 1);
    Some([1].into_iter().chain(target).collect())
}

const UNDECODED: Failure = Failure::text("ERR could not decode requested zset member");

fn position(longitude: &[u8], latitude: &[u8]) -> Result<Point, Failure> {
    let (longitude, latitude) = (score(longitude)?, score(latitude)?);
    if longitude.abs() > LONGITUDE_MAX || latitude.abs() > LATITUDE_MAX {
        return Err(Failure::said(format!(
            "ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}"
        )));
    }
    Ok(Point { longitude, latitude })
}

/// Metres.
fn unit(word: &[u8]) -> Result<f64, Failure> {
    match word.to_ascii_lowercase().as_slice() {
        b"m" => Ok(1.0),
        b"km" => Ok(1000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1609.34),
        _ => Err(Failure::text("ERR unsupported unit provided. please use M, KM, FT, MI")),
    }
}

fn length(word: &[u8], what: &'static str) -> Result<f64, Failure> {
    double::argument(word).ok_or(Failure::text(what))
}

fn geoadd(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut adding = Adding::default();
    let mut first = 2;
    while first < args.len() {
        match () {
            () if args.is(first, "nx") => adding.only_new = true,
            () if args.is(first, "xx") => adding.only_there = true,
            () if args.is(first, "ch") => adding.count_changed = true,
            () => break,
        }
        first += 1;
    }
    let places = args.from(first);
    if places.len() % 3 != 0 || (adding.only_new && adding.only_there) || places.is_empty() {
        return Err(Failure::SYNTAX);
    }
    let mut members = Vec::with_capacity(places.len() / 3);
    for at in (0..places.len()).step_by(3) {
        let point = position(places.at(at), places.at(at + 1))?;
        members.push((geohash::score(point), places.at(at + 2)));
    }
    add(call, adding, &members)
}

fn reply_point(reply: &mut dyn Reply, point: Point) {
    reply.array(2);
    reply.decimal(point.longitude);
    reply.decimal(point.latitude);
}

/// Four digits behind the point.
fn reply_distance(reply: &mut dyn Reply, distance: f64) {
    let scaled = (distance * 10_000.0).round_ties_even() as i64;
    reply.bulk(format!("{}.{:04}", scaled / 10_000, scaled % 10_000).as_bytes());
}

fn geopos(call: &mut Call<'_>) -> Outcome {
    let zset = call.keys.zset(call.args.at(1))?;
    let members = call.args.from(2);
    call.reply.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => reply_point(call.reply, geohash::point(score)),
            None => call.reply.null_array(),
        }
    }
    Ok(())
}

fn geohash(call: &mut Call<'_>) -> Outcome {
    let zset = call.keys.zset(call.args.at(1))?;
    let members = call.args.from(2);
    call.reply.array(members.len());
    for member in members.iter() {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => call.reply.bulk(&geohash::letters(score)),
            None => call.reply.null(),
        }
    }
    Ok(())
}

fn geodist(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if args.len() > 5 {
        return Err(Failure::SYNTAX);
    }
    let metres = args.get(4).map_or(Ok(1.0), unit)?;
    let zset = call.keys.zset(args.at(1))?;
    let points = zset.and_then(|zset| Some((zset.score(args.at(2))?, zset.score(args.at(3))?)));
    match points {
        Some((a, b)) => {
            let distance = geohash::distance(geohash::point(a), geohash::point(b));
            reply_distance(call.reply, distance / metres);
        }
        None => call.reply.null(),
    }
    Ok(())
}

/// Where a GEORADIUS begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Position,
    Member,
}

/// What a search wants.
#[derive(Debug, Default)]
struct Wanted<'a> {
    from: Option<From>,
    /// None: nothing has been said, or it is a member of a set that is not there.
    centre: Option<Point>,
    shape: Option<Shape>,
    /// Metres of the unit in which distances are told.
    metres: f64,
    with_distance: bool,
    with_hash: bool,
    with_position: bool,
    /// True: the nearest first.
    ascending: Option<bool>,
    count: Option<usize>,
    any: bool,
    target: Option<&'a [u8]>,
    store_distance: bool,
}

impl<'a> Wanted<'a> {
    /// An option that all have. Gives how many words it is; none when it is not one of them.
    fn common(&mut self, args: Args<'a>, at: usize) -> Result<Option<usize>, Failure> {
        match () {
            () if args.is(at, "withdist") => self.with_distance = true,
            () if args.is(at, "withhash") => self.with_hash = true,
            () if args.is(at, "withcoord") => self.with_position = true,
            () if args.is(at, "any") => self.any = true,
            () if args.is(at, "asc") => self.ascending = Some(true),
            () if args.is(at, "desc") => self.ascending = Some(false),
            () if args.is(at, "count") && at + 1 < args.len() => {
                let count = integer(args.at(at + 1))?;
                let count = usize::try_from(count).ok().filter(|count| *count > 0);
                self.count = Some(count.ok_or(Failure::text("ERR COUNT must be > 0"))?);
                return Ok(Some(2));
            }
            () => return Ok(None),
        }
        Ok(Some(1))
    }

    fn circle(&mut self, radius: &[u8], unit: &[u8]) -> Outcome {
        let radius = length(radius, "ERR need numeric radius")?;
        if radius < 0.0 {
            return Err(Failure::text("ERR radius cannot be negative"));
        }
        self.metres = self::unit(unit)?;
        self.shape = Some(Shape::Circle { radius: radius * self.metres });
        Ok(())
    }

    fn rectangle(&mut self, width: &[u8], height: &[u8], unit: &[u8]) -> Outcome {
        let width = length(width, "ERR need numeric width")?;
        let height = length(height, "ERR need numeric height")?;
        if width < 0.0 || height < 0.0 {
            return Err(Failure::text("ERR height or width cannot be negative"));
        }
        self.metres = self::unit(unit)?;
        let (width, height) = (width * self.metres, height * self.metres);
        self.shape = Some(Shape::Box { width, height });
        Ok(())
    }

    fn around_member(&mut self, zset: Option<&Zset>, member: &[u8]) -> Outcome {
        self.from = Some(From::Member);
        if let Some(zset) = zset {
            self.centre = Some(geohash::point(zset.score(member).ok_or(UNDECODED)?));
        }
        Ok(())
    }

    /// What GEOSEARCH has beside the common options.
    fn search_option(
        &mut self,
        args: Args<'a>,
        at: usize,
        zset: Option<&Zset>,
        stores: bool,
    ) -> Result<usize, Failure> {
        let left = args.len() - at - 1;
        let (member, place) = (Some(From::Member), Some(From::Position));
        let circle = matches!(self.shape, Some(Shape::Circle { .. }));
        let rectangle = matches!(self.shape, Some(Shape::Box { .. }));
        match () {
            () if stores && args.is(at, "storedist") => {
                self.store_distance = true;
                Ok(1)
            }
            () if left >= 1 && args.is(at, "frommember") && self.from != place => {
                self.around_member(zset, args.at(at + 1))?;
                Ok(2)
            }
            () if left >= 2 && args.is(at, "fromlonlat") && self.from != member => {
                self.from = place;
                self.centre = Some(position(args.at(at + 1), args.at(at + 2))?);
                Ok(3)
            }
            () if left >= 2 && args.is(at, "byradius") && !rectangle => {
                self.circle(args.at(at + 1), args.at(at + 2))?;
                Ok(3)
            }
            () if left >= 3 && args.is(at, "bybox") && !circle => {
                self.rectangle(args.at(at + 1), args.at(at + 2), args.at(at + 3))?;
                Ok(4)
            }
            () => Err(Failure::SYNTAX),
        }
    }

    fn check(&self, command: &str) -> Outcome {
        if self.target.is_some() && (self.with_distance || self.with_hash || self.with_position) {
            return Err(Failure::said(format!(
                "ERR {command} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        Ok(())
    }

    fn check_any(&self) -> Outcome {
        if self.any && self.count.is_none() {
            return Err(Failure::text("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }
}

/// GEORADIUS and GEORADIUSBYMEMBER.
fn radius(call: &mut Call<'_>, from: From, may_store: bool) -> Outcome {
    let args = call.args;
    let mut wanted = Wanted::default();
    let zset = call.keys.zset(args.at(1))?;
    let mut at = match from {
        From::Position => {
            wanted.centre = Some(position(args.at(2), args.at(3))?);
            wanted.circle(args.at(4), args.at(5))?;
            6
        }
        From::Member => {
            if zset.is_some() {
                wanted.around_member(zset, args.at(2))?;
                wanted.circle(args.at(3), args.at(4))?;
            }
            5
        }
    };
    while at < args.len() {
        if let Some(words) = wanted.common(args, at)? {
            at += words;
            continue;
        }
        let distance = args.is(at, "storedist");
        if !may_store || at + 1 >= args.len() || !(distance || args.is(at, "store")) {
            return Err(Failure::SYNTAX);
        }
        wanted.target = Some(args.at(at + 1));
        wanted.store_distance = distance;
        at += 2;
    }
    wanted.check("STORE option in GEORADIUS")?;
    wanted.check_any()?;
    let found = find(zset, &wanted);
    answer(call, &wanted, found, "georadiusstore")
}

/// GEOSEARCH and GEOSEARCHSTORE.
fn search(call: &mut Call<'_>, stores: bool) -> Outcome {
    let args = call.args;
    let source = if stores { 2 } else { 1 };
    let mut wanted = Wanted::default();
    let zset = call.keys.zset(args.at(source))?;
    let mut at = source + 1;
    while at < args.len() {
        at += match wanted.common(args, at)? {
            Some(words) => words,
            None => wanted.search_option(args, at, zset, stores)?,
        };
    }
    wanted.target = stores.then(|| args.at(1));
    wanted.check("GEOSEARCHSTORE")?;
    let name = whole(args.at(0));
    if wanted.from.is_none() {
        let why = b"ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ";
        return Err(Failure::joined(&[why, name]));
    }
    if wanted.shape.is_none() {
        let why = b"ERR exactly one of BYRADIUS and BYBOX can be specified for ";
        return Err(Failure::joined(&[why, name]));
    }
    wanted.check_any()?;
    let found = find(zset, &wanted);
    answer(call, &wanted, found, "geosearchstore")
}

/// A member within the shape.
struct Found {
    name: Box<[u8]>,
    score: f64,
    point: Point,
    /// Metres.
    distance: f64,
}

fn find(zset: Option<&Zset>, wanted: &Wanted<'_>) -> Vec<Found> {
    let (Some(zset), Some(centre), Some(shape)) = (zset, wanted.centre, wanted.shape) else {
        return Vec::new();
    };
    let limit = if wanted.any { wanted.count.unwrap_or(usize::MAX) } else { usize::MAX };
    let mut found = Vec::new();
    for square in geohash::squares(centre, shape) {
        let (from, to) = square.scores();
        let first = zset.count_while(|_, score| score < from);
        let behind = zset.count_while(|_, score| score < to);
        for (name, score) in zset.range(first, behind) {
            if found.len() >= limit {
                break;
            }
            let point = geohash::point(score);
            if let Some(distance) = shape.distance(centre, point) {
                found.push(Found { name: name.into(), score, point, distance });
            }
        }
    }
    let ascending = wanted.ascending.or((wanted.count.is_some() && !wanted.any).then_some(true));
    match ascending {
        Some(true) => found.sort_by(|a, b| a.distance.total_cmp(&b.distance)),
        Some(false) => found.sort_by(|a, b| b.distance.total_cmp(&a.distance)),
        None => {}
    }
    found.truncate(wanted.count.unwrap_or(usize::MAX));
    found
}

fn answer(
    call: &mut Call<'_>,
    wanted: &Wanted<'_>,
    found: Vec<Found>,
    event: &'static str,
) -> Outcome {
    if let Some(target) = wanted.target {
        // A search around the earth may find a member twice.
        let mut members: HashMap<Box<[u8]>, f64, foldhash::fast::RandomState> = HashMap::default();
        for Found { name, score, distance, .. } in found {
            let score = if wanted.store_distance { distance / wanted.metres } else { score };
            members.insert(name, score);
        }
        return store(call, target, members.into_iter().collect(), event);
    }
    let options = [wanted.with_distance, wanted.with_hash, wanted.with_position];
    let options = options.into_iter().filter(|option| *option).count();
    call.reply.array(found.len());
    for Found { name, score, point, distance } in found {
        if options > 0 {
            call.reply.array(options + 1);
        }
        call.reply.bulk(&name);
        if wanted.with_distance {
            reply_distance(call.reply, distance / wanted.metres);
        }
        if wanted.with_hash {
            call.reply.integer(score as i64);
        }
        if wanted.with_position {
            reply_point(call.reply, point);
        }
    }
    Ok(())
}
