//! Positions: what Redis replies.

use crate::check;
use crate::rig::Rig;

#[test]
fn positions_are_kept_and_told() {
    let table = [
        ("GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", "2"),
        ("GEOADD g NX 1 1 Palermo", "0"),
        ("GEOADD g XX CH 13.361389 38.115557 Palermo 1 1 none", "0"),
        ("GEOADD g CH 13.361389 38.115556 Palermo", "0"),
        ("GEOADD g NX XX 1 1 a", "!ERR syntax error"),
        ("GEOADD g 1 1", "!ERR wrong number of arguments for 'geoadd' command"),
        ("GEOADD g 1 1 a 2", "!ERR syntax error"),
        ("GEOADD g 181 1 a", "!ERR invalid longitude,latitude pair 181.000000,1.000000"),
        ("GEOADD g 1 -85.06 a", "!ERR invalid longitude,latitude pair 1.000000,-85.060000"),
        ("GEOADD g x 1 a", "!ERR value is not a valid float"),
        ("GEOPOS g Palermo none", r#"[[,13.36138933897018433 ,38.11555639549629859] (nil array)]"#),
        ("GEOPOS none a", "[(nil array)]"),
        ("GEOPOS g", "[]"),
        ("GEODIST g Palermo Catania", r#""166274.1516""#),
        ("GEODIST g Palermo Catania km", r#""166.2742""#),
        ("GEODIST g Palermo Catania MI", r#""103.3182""#),
        ("GEODIST g Palermo Catania ft", r#""545518.8700""#),
        ("GEODIST g Palermo none", "(nil)"),
        ("GEODIST g Palermo Palermo", r#""0.0000""#),
        ("GEODIST none a b", "(nil)"),
        (
            "GEODIST g Palermo Catania yards",
            "!ERR unsupported unit provided. please use M, KM, FT, MI",
        ),
        ("GEODIST g Palermo Catania m x", "!ERR syntax error"),
        ("GEOHASH g Palermo none Catania", r#"["sqc8b49rny0" (nil) "sqdtr74hyu0"]"#),
        ("ZSCORE g Palermo", ",3479099956230698"),
    ];
    check(2, &table);
}

#[test]
fn a_search_finds_what_is_near() {
    let table = [
        ("GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania 12.758489 38.788135 edge1 17.241510 38.788135 edge2", "4"),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC", r#"["Catania" "Palermo"]"#),
        ("GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km DESC WITHDIST", r#"[["Palermo" "190.4424"] ["Catania" "56.4413"]]"#),
        ("GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHCOORD WITHDIST WITHHASH", r#"[["Catania" "56.4413" 3479447370796909 [,15.08726745843887329 ,37.50266842333162032]] ["Palermo" "190.4424" 3479099956230698 [,13.36138933897018433 ,38.11555639549629859]] ["edge2" "279.7403" 3481342659049484 [,17.24151045083999634 ,38.78813451624225195]] ["edge1" "279.7405" 3479273021651468 [,12.7584877610206604 ,38.78813451624225195]]]"#),
        ("GEOSEARCH g FROMMEMBER Palermo BYRADIUS 100 mi ASC COUNT 1", r#"["Palermo"]"#),
        ("GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1000 mi COUNT 2", r#"["Palermo" "edge1"]"#),
        ("GEOSEARCH g FROMMEMBER Palermo BYRADIUS 1000 mi COUNT 1 ANY", r#"["Palermo"]"#),
        ("GEOSEARCH g FROMMEMBER none BYRADIUS 1000 mi", "!ERR could not decode requested zset member"),
        ("GEOSEARCH none FROMMEMBER x BYRADIUS 1000 mi", "[]"),
        ("GEOSEARCH g BYRADIUS 1000 mi ASC ASC", "!ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH"),
        ("GEOSEARCH g FROMLONLAT 1 1 ASC ASC", "!ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH"),
        ("GEOSEARCH g FROMLONLAT 1 1 FROMMEMBER Palermo BYRADIUS 1 m", "!ERR syntax error"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYBOX 1 1 m BYRADIUS 1 m", "!ERR syntax error"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYRADIUS -1 m", "!ERR radius cannot be negative"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYRADIUS x m", "!ERR need numeric radius"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYBOX x 1 m", "!ERR need numeric width"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYBOX 1 x m", "!ERR need numeric height"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYBOX 1 -1 m", "!ERR height or width cannot be negative"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 parsec", "!ERR unsupported unit provided. please use M, KM, FT, MI"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m COUNT 0", "!ERR COUNT must be > 0"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m ANY", "!ERR the ANY argument requires COUNT argument"),
        ("GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m STOREDIST", "!ERR syntax error"),
        ("GEOSEARCHSTORE t g FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 3", "3"),
        ("GEOPOS t Catania", r#"[[,15.08726745843887329 ,37.50266842333162032]]"#),
        ("GEOSEARCHSTORE t g FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 3 STOREDIST", "3"),
        ("ZRANGE t 0 -1", r#"["Catania" "Palermo" "edge2"]"#),
        ("GEOSEARCHSTORE t g FROMLONLAT 15 37 BYRADIUS 1 m WITHDIST", "!ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options"),
        ("GEOSEARCHSTORE t g FROMLONLAT 15 37 BYRADIUS 1 m", "0"),
        ("ZCARD t", "0"),
        ("GEOSEARCHSTORE t none FROMLONLAT 15 37 BYRADIUS 1 m", "0"),
    ];
    check(2, &table);
}

#[test]
fn the_old_searches() {
    let table = [
        ("GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania", "2"),
        ("GEORADIUS g 15 37 200 km WITHDIST WITHCOORD ASC", r#"[["Catania" "56.4413" [,15.08726745843887329 ,37.50266842333162032]] ["Palermo" "190.4424" [,13.36138933897018433 ,38.11555639549629859]]]"#),
        ("GEORADIUS g 15 37 100 km", r#"["Catania"]"#),
        ("GEORADIUS_RO g 15 37 200 km COUNT 1 WITHHASH", r#"[["Catania" 3479447370796909]]"#),
        ("GEORADIUS_RO g 15 37 200 km STORE t", "!ERR syntax error"),
        ("GEORADIUSBYMEMBER g Palermo 200 km ASC", r#"["Palermo" "Catania"]"#),
        ("GEORADIUSBYMEMBER g none 200 km", "!ERR could not decode requested zset member"),
        ("GEORADIUSBYMEMBER none x 200 km", "[]"),
        ("GEORADIUSBYMEMBER_RO g Catania 10 km", r#"["Catania"]"#),
        ("GEORADIUS g 15 37 200 km STORE t", "2"),
        ("ZCARD t", "2"),
        ("GEORADIUSBYMEMBER g Palermo 200 km STOREDIST t", "2"),
        ("ZRANGE t 0 0 WITHSCORES", r#"["Palermo" ,0]"#),
        ("GEORADIUS g 15 37 200 km STORE t WITHDIST", "!ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options"),
        ("GEORADIUS none 15 37 200 km STORE t", "0"),
        ("ZCARD t", "0"),
        ("SET s x", "OK"),
        ("GEORADIUS s 15 37 200 km", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GEOADD s 1 1 a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GEOPOS s a", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("GEODIST s a b", "!WRONGTYPE Operation against a key holding the wrong kind of value"),
    ];
    check(2, &table);
}

#[test]
fn scores_that_no_point_has_wrap_around() {
    let mut rig = Rig::new();
    rig.check("ZADD z -1 far 100 near 1e30 beyond", "3");
    rig.check("GEOSEARCH z FROMMEMBER far BYBOX 400 400 km ASC", "[]");
    rig.check("GEODIST z far near", "\"18919841.7698\"");
    rig.check("GEOHASH z far", "[\"bp05b5048p0\"]");
}
