use wire::pg::auth::{md5_response, md5_response_from_hash, ScramVerifier, Secret};
use wire::pg::WireError;

/// What PostgreSQL 15 stored for `md5user` and `scramuser` with the password `pencil`.
const MD5: &str = "md50098e7fab7b4d8d091067152a80b3f12";
const SCRAM: &str = "SCRAM-SHA-256$4096:eSejugD+RfenBcG2B2lC/w==\
    $3hg/gndmN6p2pEnhrZFDshGJIiMY/kHZkENd6FI+JfM=:hJ5sqxsn6OimE+iFlaR9ggz+sSxtxRRkY7Ee6sGVHUw=";

fn secret(stored: &str) -> Secret {
    Secret::parse(stored).expect("a secret")
}

#[test]
fn secrets_are_told_apart_as_postgresql_does() {
    assert!(matches!(secret(MD5), Secret::Md5(hex) if hex[..] == MD5.as_bytes()[3..]));
    assert!(matches!(secret(SCRAM), Secret::Scram(v) if v.to_string() == SCRAM));
    let upper = MD5.to_uppercase().replace("MD5", "md5");
    for plain in ["", "pencil", "md5", "SCRAM-SHA-256", &upper, &MD5[..34], &format!("{MD5}0")] {
        assert!(secret(plain) == Secret::Plain(plain.to_owned()), "{plain}");
    }
}

#[test]
fn broken_verifier_is_no_password() {
    let broken = [
        ("SCRAM-SHA-256$", "SCRAM verifier without keys"),
        ("SCRAM-SHA-256$4096$a:b", "SCRAM verifier without salt"),
        ("SCRAM-SHA-256$4096:c2FsdA==$AAAA", "SCRAM verifier without server key"),
        ("SCRAM-SHA-256$0:c2FsdA==$a:b", "SCRAM iteration count"),
        ("SCRAM-SHA-256$-1:c2FsdA==$a:b", "SCRAM iteration count"),
        ("SCRAM-SHA-256$+1:c2FsdA==$a:b", "SCRAM iteration count"),
        ("SCRAM-SHA-256$2147483648:c2FsdA==$a:b", "SCRAM iteration count"),
        ("SCRAM-SHA-256$1:!$a:b", "SCRAM salt"),
        ("SCRAM-SHA-256$1:c2FsdA==$AAAA:AAAA", "SCRAM stored key"),
    ];
    for (stored, why) in broken {
        assert_eq!(Secret::parse(stored), Err(WireError::BadSecret(why)), "{stored}");
    }
    let cut = SCRAM.trim_end_matches("HUw=");
    assert_eq!(Secret::parse(cut), Err(WireError::BadSecret("SCRAM server key")));
}

#[test]
fn debug_shows_no_secret() {
    assert_eq!(format!("{:?}", secret("pencil")), "Secret::Plain(..)");
    assert_eq!(format!("{:?}", secret(MD5)), "Secret::Md5(..)");
    assert_eq!(format!("{:?}", secret(SCRAM)), "Secret::Scram(..)");
    let verifier = ScramVerifier::parse(SCRAM).expect("a verifier");
    assert_eq!(format!("{verifier:?}"), "ScramVerifier(..)");
}

#[test]
fn password_in_the_clear_is_checked_against_every_kind() {
    for (stored, user) in [("pencil", "any"), (MD5, "md5user"), (SCRAM, "any")] {
        let secret = secret(stored);
        assert!(secret.check_plain(user, b"pencil"), "{stored}");
        for wrong in [&b"pencil2"[..], b"penci", b"Pencil", b"", b"\xff", &stored.as_bytes()[1..]] {
            assert!(!secret.check_plain(user, wrong), "{stored}");
        }
    }
    assert!(!secret(MD5).check_plain("another", b"pencil"));
}

#[test]
fn empty_password_is_never_right() {
    assert!(!secret("").check_plain("user", b""));
    let derived = ScramVerifier::derive("", b"salt", 1);
    assert!(!Secret::Scram(derived).check_plain("user", b""));
    let response = md5_response("user", "", [1, 2, 3, 4]);
    assert_eq!(secret("").check_md5("user", [1, 2, 3, 4], response.as_bytes()), None);
    assert!(secret("").scram_verifier(b"salt", 1).is_none());
}

/// psql logging in to PostgreSQL 15 as `md5user`.
#[test]
fn md5_response_is_that_of_psql() {
    let salt = [0xc1, 0xa9, 0x93, 0x94];
    let psql = "md57e6ff64d6020532c34f0e7beb21e9426";
    assert_eq!(md5_response("md5user", "pencil", salt), psql);
    let Secret::Md5(hash) = secret(MD5) else { panic!("not an md5 secret") };
    assert_eq!(md5_response_from_hash(&hash, salt), psql);
    for stored in ["pencil", MD5] {
        let check =
            |user, salt, response: &str| secret(stored).check_md5(user, salt, response.as_bytes());
        assert_eq!(check("md5user", salt, psql), Some(true));
        assert_eq!(check("md5user", [0; 4], psql), Some(false));
        assert_eq!(check("md5user", salt, &psql[..34]), Some(false));
        assert_eq!(check("md5user", salt, ""), Some(false));
    }
    assert_eq!(secret("pencil").check_md5("another", salt, psql.as_bytes()), Some(false));
    assert_eq!(secret(SCRAM).check_md5("md5user", salt, psql.as_bytes()), None);
}

#[test]
fn verifier_comes_from_a_password_or_is_stored() {
    let stored = secret(SCRAM).scram_verifier(b"ignored", 1).expect("stored");
    assert_eq!(stored.to_string(), SCRAM);
    let derived = secret("pencil").scram_verifier(&stored.salt, 4096).expect("derived");
    assert_eq!(derived.to_string(), SCRAM);
    assert!(secret(MD5).scram_verifier(b"salt", 4096).is_none());
}

/// `CREATE ROLE ... PASSWORD` in PostgreSQL 15, then `SELECT rolpassword FROM pg_authid`.
const PREPARED: &[(&str, &str)] = &[
    ("pencil", "SCRAM-SHA-256$4096:o5h5V8D5HbEw8SmL1oi6aw==$iMgwT9OnyUL9/HpmnjR0lReDvzzUtrrvpibJH4hu1mk=:pfisbhwmjmIF6zhx8GRVq/LhQv+aAmdk+GtYGRdh3sY="),
    ("I\u{ad}X", "SCRAM-SHA-256$4096:ehYE5ip52Gvd7KElk7Y+ew==$fYUXIeXKeeFmTplPkm7e7opojvr0qFHZ4M070SZsvfc=:966Hl+ZpE7xgf4KozNlLWzG4UKh/2JyPXCu9QNdbpQM="),
    ("a\u{a0}b", "SCRAM-SHA-256$4096:8NXTrbEjBMxVpTkaC2s3uQ==$ieHV4rv067mxHHhRdNimnRxKouMfBb/ApV4Na7cppcU=:UmdyVdFkEgUQQGUJPz0LI+oHCjcDyVSWXeZj0BuImQQ="),
    ("a\u{200b}b", "SCRAM-SHA-256$4096:lk7rffr7mMS3f6zJNINpTQ==$q1tK4olCnu8kN9pVr9ebVyaWo/W8uCV+CHtPoaX6p1g=:qzKV3NdE73ohmwbAgwKPyoS9b6UFPmy+qcHI0wsD5V8="),
    ("\u{aa}", "SCRAM-SHA-256$4096:Vysp/F6vON2FQqc6KROhJQ==$5/NY0StzX0GIF29V0x2ipEJjOTjHQFReBKFYWbWKsb0=:hWsSvI8KdL1i/0Xg0mRcnkMTcTiQOklJSJcaNbt/5dA="),
    ("\u{2168}", "SCRAM-SHA-256$4096:P/jJJdWuN/qbafuHB4MJ+g==$xBbOSBtIG+/6mVfBZOH1t3fCRve8NviwLxAYXZoiqvg=:YMrpoSu6HN3Y58XK3BTRJApzTHDl5oj07ywkHCcMv0g="),
    ("\u{ad}", "SCRAM-SHA-256$4096:qo4ObCHVFEZ6mXY3ZVLOlA==$outV3e6mee1+/b3M7MwKwQ8mnbWtMwXkhH9yaxo9Q7A=:l4ScEh6Nwdkw4K4EY0tciXxBilKKM0To9J0ckB7FdT0="),
    ("a\u{7}b", "SCRAM-SHA-256$4096:YR0KenrIpDqQgVAAlwAQjw==$JnaHFsmGp8omXFmp/to82AGuiAT7QgDVLmMIgFU7QW4=:529Ms4zZ4Rn/d49ajBTCmftc+00YvPGOWAQ+qvXiOMU="),
    ("\u{e9}\u{7}", "SCRAM-SHA-256$4096:VPeat1urjUhQT7P6vgfINg==$8Dhf2jdVJLLJ/x9IJf5SjoKKT7GqWNV4ntBujTkI28g=:jlv2jSZ+cJ1kDacZla6IKa4hsD6t2ZsVaf1AAt8rqz8="),
    ("\u{627}1", "SCRAM-SHA-256$4096:wBgd2eF1Mmx8Xu51X1Xgvw==$yC5ousm8mmJJrn6yT2A3g4v+ZSeI0JwgrTR67mgNy0k=:3j5yMIxlsX6Hkkg/RbJK+UyoloGjizcKpVCbLCH2FqY="),
    ("\u{627}1\u{628}", "SCRAM-SHA-256$4096:wkENuHDi83wONzx7dG7ALw==$tD5dPuL9QLshm5Vp2EM0d181HJU/zdFJ32uwUHfUPo0=:iToYIOQiZ7Vmn6A/u1z44bsAK2GIoHMMSCD7TQMBsWM="),
    ("a\u{627}b", "SCRAM-SHA-256$4096:JfX/0FG2AfuLq5/KdTfgOg==$EovWp6dDh4nm9cmcRUh8fEKjVTCpeQjlJznEekqXywQ=:kK1ehbzuqPZOyaDahyrf6Nazb+wUsSH0XrbyslkOKlA="),
    ("a\u{2135}", "SCRAM-SHA-256$4096:U26yhMkoixr7ou+imHyWfA==$8PNJCawtrIV58MJKmh2btiE21SZX/xffRAL504EN6dU=:h/S8chWk64E8Pnt7T6iC0E/0eWq2uObNWb4kk3VpSxk="),
    ("e\u{340}", "SCRAM-SHA-256$4096:haU7MMgwSbgjUXCgiAs1+A==$HiJMYYtmKo7nHRE4wllDGq6U+nI0xkwqfZqSg3ZLZng=:hTFOHszqk/zmUUk5GdSI1tp4tg0Uu77YvC4zLZAueeg="),
    ("\u{1f600}", "SCRAM-SHA-256$4096:rZZ/Cxt1pAx6X3g1Ol196A==$ymDhxlkSYzJuSOksprGaelK7Gf285z/y3/P1ReNieRI=:V03rFyWinE7y5t4ItKPcJrYs2b8Z0W+lZc4pnzzouxo="),
    ("\u{a8}x", "SCRAM-SHA-256$4096:jZYLB7X5qX6/nUm0xLs60Q==$BbTY9+u4rkCYNxDu0FBz5rV1jewbwxegV0EtBVX82nU=:fJAtCt36UMmnh8yJsCNTA7ZwstiMrEa95ctOd9TTSjQ="),
    ("e\u{301}", "SCRAM-SHA-256$4096:2Nqe6RJ6ClZbTW7NfkLR3g==$LIT2n6wgPi47ztGl9hWZ951ZgvpbVjwRxP/2RqAFpSE=:0OzCk1tjlq+A8n5tkwqaftDjaxgBuWeyr5NZbKoTY7c="),
    ("\u{e000}\u{e9}", "SCRAM-SHA-256$4096:F8FRkeLD/GAYef34Gz4afQ==$rMCEztniOQd14wqNGCfQd+RL65c8YM67lOivUqFc0Js=:jo6Y2+d0iWUxdUicSZdgwCvtA+ObHo0hW6pNSJxjm3k="),
    ("\u{627}\u{2168}", "SCRAM-SHA-256$4096:JjUccyXCSZyfvrpTtsjTkQ==$kEBt/z92gNsWWDAYxL5AuTzDZJQ6YXfk4TiOcqCrktE=:VPqf+qomhdWlqhsluY991t+eBKXCJlgy9iTGIC41Gf0="),
    ("\u{627}\u{ff11}", "SCRAM-SHA-256$4096:X7h+tQBx5KQ6vm3kSsWAww==$anbXb37JvLrOyFznqqE4BvO1MPULcWveZPeXu93yWKA=:EtiwgsU/y96Xs9dER463g/xrMxtW65L1RtkHH4tiw/Y="),
    ("\u{627}\u{2168}\u{628}", "SCRAM-SHA-256$4096:FzoNI/zCf2I3b0HkzmAfEQ==$TJOAkFxuf+bdMiX8bTnrhdmUtPogCNSRMI9WvHIzL40=:OqOM0nXyqFKjO2acuCMi92ROTvO7F25pzc0CANh8hXQ="),
    ("\u{ff11}\u{627}", "SCRAM-SHA-256$4096:ZMEmDBJNHCzI7a5+bX4+GA==$wEIFVCZ5TZx3YcJcLBxuI3QzcoW3hqCt2BYn4yLcisY=:SQpdp40Um6hfue0vdKTUtUa5GMDeDM0JF1TM4fT6LVg="),
    ("\u{e000}\u{2168}", "SCRAM-SHA-256$4096:fw76gyAtzb3QcrSrFlbjtA==$QsmaU30QPK/cAw/1C9hLw5qsoC/J5/BBTame6O92bVg=:1uKZIMyX0cgkerUHelp3qdWfGAMoMHPDLat+gBpiHKI="),
    ("\u{7}\u{2168}", "SCRAM-SHA-256$4096:DvGf9TJuEouwdTtp1iSlJg==$4XqJkqWGxe960BStTw6FjQstorcO1+apW1xQV3izugQ=:czQIjbm1KNNxXlH4J7AxQgsutR3zNOglg4K+fQzpCAg="),
    ("\u{1f600}\u{2168}", "SCRAM-SHA-256$4096:/NcGovdRM5/kznWI5lJ0mA==$nLKiLiU3QKiWYisblHTpvEm+cm9MFgwbxeMr17tAIYU=:Ke1elcv1xiQbrmuIsURslDJY4H8Wnvvh0STqVGrMDog="),
    ("\u{2028}\u{2168}", "SCRAM-SHA-256$4096:NH1N/J5/qAUDXRTmrV7eJQ==$xCxE3tY+ehZ2YuMB+oCp8u36ja+UR4/zRcHEPIFA3l8=:KS4MpN6lDiYMBHdaIM13fqkGc02/8yL26CPi8Hw8WtE="),
    ("\u{202a}\u{2168}", "SCRAM-SHA-256$4096:2xDexRpfGJFYUNKOFr2BRQ==$A0AFgp/749lLHEHoutrUiqMFD9J9CfbKetgGezV95gI=:enj/HCXaApQdAWxgb8uzTkf8Pw8Hhf7pnf3G519PGHI="),
    ("\u{fffd}\u{2168}", "SCRAM-SHA-256$4096:mUfcXZf8bbznS1lb9LhOjA==$2Z17bd49n314h8GcDZsho5+UsFXFgSiL6RnLRNw+KtM=:MWj1kCnPqpv2v4YEDesM0y2GkDA+WrsszdHv22Ixl/I="),
    ("\u{2ff0}\u{2168}", "SCRAM-SHA-256$4096:PsJ1jA3/Tilz+BjgPnBiPQ==$m6ZS6VEK7pwt/SS2ZfR1qO4LbY7d1IhGv831JN7ZZ7I=:7pm9ztxGA3UawXXGxVABKS9KjDEOHHK/ubw+P9b+yfs="),
    ("\u{e0001}\u{2168}", "SCRAM-SHA-256$4096:T654jZ9pjFEALwnXxduTvw==$cYroPFJjdGI1i2lo58FJC96psyNDgQQDyHN/Z5CD3i8=:RMlSKcAc+1F8MJfPzG2RbUAeGQYOLTgogFDYoeX8WfI="),
    ("\u{fdd0}\u{2168}", "SCRAM-SHA-256$4096:trivPoONex0sk1zsV15x6A==$LXFdg0tgeErXSkoBzz3XIaHTeqADJFsNaAW3SLcI6v0=:uyArNzdMIG9MpTXjltNfNEpj5tpZORKRVDoeM6RxDXI="),
    ("\u{85}\u{2168}", "SCRAM-SHA-256$4096:OdEQz2rL5Hn7tvG9A5jsNQ==$NJVfJm1ofcEzIoHqU0hYm2ytAGF7b6TAxRX7OUxBE+c=:3Sr/KX9j57ln1xrwypyloZHnpdSP1KF+BgLtPr0uEHw="),
];

#[test]
fn passwords_are_prepared_as_postgresql_does() {
    for (password, stored) in PREPARED {
        let of_server = ScramVerifier::parse(stored).expect("a verifier");
        let ours = ScramVerifier::derive(password, &of_server.salt, of_server.iterations);
        assert_eq!(ours.to_string(), *stored, "{}", password.escape_unicode());
        assert!(secret(stored).check_plain("user", password.as_bytes()));
    }
}

#[test]
fn password_that_is_not_utf8_is_taken_as_it_is() {
    let latin1 = b"p\xe4ss";
    assert!(!secret("p\u{e4}ss").check_plain("user", latin1));
    assert!(!secret(SCRAM).check_plain("user", latin1));
}
