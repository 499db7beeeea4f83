//! Positions on earth as scores: 26 bits of longitude and 26 of latitude, interleaved, so that
//! what is near has near scores; and the boxes that a search has to look at.
//!
//! Source: Redis's `geohash.c` and `geohash_helper.c`, whose numbers this has to give bit by bit.

/// Degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub longitude: f64,
    pub latitude: f64,
}

pub const LONGITUDE_MAX: f64 = 180.0;
/// Web Mercator's (EPSG:3857).
pub const LATITUDE_MAX: f64 = 85.05112878;

/// Bits of each coordinate in a score.
const STEP_MAX: u32 = 26;

const EARTH_RADIUS: f64 = 6372797.560856;
const MERCATOR_MAX: f64 = 20037726.37;

/// A square of the grid: `step` bits of each coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Square {
    bits: u64,
    step: u32,
}

/// What a search covers, in metres.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    Circle { radius: f64 },
    Box { width: f64, height: f64 },
}

#[derive(Debug, Clone, Copy)]
struct Area {
    least: Point,
    most: Point,
}

fn spread(value: u32) -> u64 {
    let mut value = u64::from(value);
    for (shift, mask) in [
        (16, 0x0000_ffff_0000_ffff),
        (8, 0x00ff_00ff_00ff_00ff),
        (4, 0x0f0f_0f0f_0f0f_0f0f),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        value = (value | (value << shift)) & mask;
    }
    value
}

fn gather(value: u64) -> u32 {
    let mut value = value & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0f0f_0f0f_0f0f_0f0f),
        (4, 0x00ff_00ff_00ff_00ff),
        (8, 0x0000_ffff_0000_ffff),
        (16, 0x0000_0000_ffff_ffff),
    ] {
        value = (value | (value >> shift)) & mask;
    }
    value as u32
}

fn encode(point: Point, latitude_max: f64, step: u32) -> Square {
    let scale = (1u64 << step) as f64;
    let latitude = (point.latitude + latitude_max) / (latitude_max + latitude_max) * scale;
    let longitude = (point.longitude + LONGITUDE_MAX) / (LONGITUDE_MAX + LONGITUDE_MAX) * scale;
    Square { bits: spread(latitude as u32) | spread(longitude as u32) << 1, step }
}

/// A point's score in a sorted set.
pub fn score(point: Point) -> f64 {
    encode(point, LATITUDE_MAX, STEP_MAX).bits as f64
}

/// The middle of a score's square.
pub fn point(score: f64) -> Point {
    let Area { least, most } = Square { bits: bits(score), step: STEP_MAX }.area();
    let middle = |a: f64, b: f64, max: f64| ((a + b) / 2.0).clamp(-max, max);
    Point {
        longitude: middle(least.longitude, most.longitude, LONGITUDE_MAX),
        latitude: middle(least.latitude, most.latitude, LATITUDE_MAX),
    }
}

/// A score that no point has is converted as x86 does it: negative ones wrap around.
fn bits(score: f64) -> u64 {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    match score {
        ..0.0 => score as i64 as u64,
        TWO_TO_64.. => 0,
        _ => score as u64,
    }
}

/// The geohash as others write it, 11 letters; the last bits are not known.
///
/// <https://en.wikipedia.org/wiki/Geohash>
pub fn letters(score: f64) -> [u8; 11] {
    const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
    let bits = encode(point(score), 90.0, STEP_MAX).bits;
    std::array::from_fn(|at| match at {
        10 => ALPHABET[0],
        _ => ALPHABET[(bits >> (52 - (at + 1) * 5) & 0x1f) as usize],
    })
}

impl Square {
    fn area(self) -> Area {
        let scale = (1u64 << self.step) as f64;
        let corner = |longitude: f64, latitude: f64| Point {
            longitude: -LONGITUDE_MAX + longitude / scale * (LONGITUDE_MAX + LONGITUDE_MAX),
            latitude: -LATITUDE_MAX + latitude / scale * (LATITUDE_MAX + LATITUDE_MAX),
        };
        let latitude = f64::from(gather(self.bits));
        let longitude = f64::from(gather(self.bits >> 1));
        Area { least: corner(longitude, latitude), most: corner(longitude + 1.0, latitude + 1.0) }
    }

    /// The scores within it: from the first to before the second.
    pub fn scores(self) -> (f64, f64) {
        let shift = 52 - self.step * 2;
        ((self.bits << shift) as f64, ((self.bits + 1) << shift) as f64)
    }

    /// The square so many to the east and to the north, around the earth.
    fn neighbour(self, east: i32, north: i32) -> Square {
        let mask = (1u32 << self.step) - 1;
        let moved = |value: u32, by: i32| value.wrapping_add_signed(by) & mask;
        let latitude = spread(moved(gather(self.bits), north));
        let longitude = spread(moved(gather(self.bits >> 1), east));
        Square { bits: latitude | longitude << 1, step: self.step }
    }
}

/// Metres between two points (haversine).
pub fn distance(a: Point, b: Point) -> f64 {
    let v = ((b.longitude.to_radians_as_c() - a.longitude.to_radians_as_c()) / 2.0).sin();
    if v == 0.0 {
        return latitude_distance(a.latitude, b.latitude);
    }
    let (from, to) = (a.latitude.to_radians_as_c(), b.latitude.to_radians_as_c());
    let u = ((to - from) / 2.0).sin();
    let square = u * u + from.cos() * to.cos() * v * v;
    2.0 * EARTH_RADIUS * square.sqrt().asin()
}

fn latitude_distance(a: f64, b: f64) -> f64 {
    EARTH_RADIUS * (b.to_radians_as_c() - a.to_radians_as_c()).abs()
}

trait Degrees {
    fn to_radians_as_c(self) -> f64;
    fn to_degrees_as_c(self) -> f64;
}

impl Degrees for f64 {
    /// Rounded as Redis does it.
    fn to_radians_as_c(self) -> f64 {
        self * (std::f64::consts::PI / 180.0)
    }

    fn to_degrees_as_c(self) -> f64 {
        self / (std::f64::consts::PI / 180.0)
    }
}

impl Shape {
    /// The distance from the centre, if the point is within the shape.
    pub fn distance(self, centre: Point, point: Point) -> Option<f64> {
        match self {
            Shape::Circle { radius } => {
                Some(distance(centre, point)).filter(|away| *away <= radius)
            }
            Shape::Box { width, height } => {
                if latitude_distance(point.latitude, centre.latitude) > height / 2.0 {
                    return None;
                }
                let beside = Point { longitude: centre.longitude, latitude: point.latitude };
                let within = distance(point, beside) <= width / 2.0;
                within.then(|| distance(centre, point))
            }
        }
    }

    /// From the centre to the farthest point.
    fn reach(self) -> f64 {
        match self {
            Shape::Circle { radius } => radius,
            Shape::Box { width, height } => {
                ((width / 2.0) * (width / 2.0) + (height / 2.0) * (height / 2.0)).sqrt()
            }
        }
    }

    fn bounds(self, centre: Point) -> Area {
        let (across, up) = match self {
            Shape::Circle { radius } => (radius, radius),
            Shape::Box { width, height } => (width / 2.0, height / 2.0),
        };
        let latitude = (up / EARTH_RADIUS).to_degrees_as_c();
        // A circle of latitude is the shorter the nearer it is to the pole.
        let nearer = match centre.latitude < 0.0 {
            true => centre.latitude - latitude,
            false => centre.latitude + latitude,
        };
        let longitude = across / EARTH_RADIUS / nearer.to_radians_as_c().cos();
        let longitude = longitude.to_degrees_as_c();
        Area {
            least: Point {
                longitude: centre.longitude - longitude,
                latitude: centre.latitude - latitude,
            },
            most: Point {
                longitude: centre.longitude + longitude,
                latitude: centre.latitude + latitude,
            },
        }
    }
}

/// How fine the squares may be so that nine of them cover a search.
fn step_for(reach: f64, latitude: f64) -> u32 {
    if reach == 0.0 {
        return STEP_MAX;
    }
    let (mut step, mut reach) = (1i32, reach);
    while reach < MERCATOR_MAX {
        reach *= 2.0;
        step += 1;
    }
    step -= 2;
    step -= i32::from(latitude.abs() > 66.0) + i32::from(latitude.abs() > 80.0);
    step.clamp(1, STEP_MAX as i32) as u32
}

/// The squares that a search looks at, in its order.
pub fn squares(centre: Point, shape: Shape) -> Vec<Square> {
    let bounds = shape.bounds(centre);
    let mut step = step_for(shape.reach(), centre.latitude);
    let mut square = encode(centre, LATITUDE_MAX, step);
    let uncovered = square.neighbour(0, 1).area().most.latitude < bounds.most.latitude
        || square.neighbour(0, -1).area().least.latitude > bounds.least.latitude
        || square.neighbour(1, 0).area().most.longitude < bounds.most.longitude
        || square.neighbour(-1, 0).area().least.longitude > bounds.least.longitude;
    if step > 1 && uncovered {
        step -= 1;
        square = encode(centre, LATITUDE_MAX, step);
    }
    let area = square.area();
    let useless = |east: i32, north: i32| {
        step >= 2
            && ((area.least.latitude < bounds.least.latitude && north < 0)
                || (area.most.latitude > bounds.most.latitude && north > 0)
                || (area.least.longitude < bounds.least.longitude && east < 0)
                || (area.most.longitude > bounds.most.longitude && east > 0))
    };
    let around = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
    let mut squares: Vec<Square> = Vec::with_capacity(around.len());
    for (east, north) in around {
        let next = square.neighbour(east, north);
        // Of huge searches neighbours are the same; Redis looks at the one before, but for the
        // first.
        let again = squares.len() > 1 && squares.last() == Some(&next);
        if !useless(east, north) && !again {
            squares.push(next);
        }
    }
    squares
}
