use std::path::PathBuf;

use proptest::prelude::*;

use super::tokens::fields;
use super::*;

/// A directory that is removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("pondage-hba-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Place(path)
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let file = self.0.join(name);
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        std::fs::write(&file, text).expect("a file");
        file
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn rules(name: &str, text: &str) -> Result<Rules, Vec<Fault>> {
    Rules::read(&Place::new(name).put("hba", text))
}

/// The faults as `line:column: message`.
fn told(faults: &[Fault]) -> Vec<String> {
    let told =
        |fault: &Fault| format!("{}:{}: {}", fault.place.line, fault.place.column, fault.message);
    faults.iter().map(told).collect()
}

#[track_caller]
fn refused(name: &str, text: &str) -> Vec<String> {
    told(&rules(name, text).err().unwrap_or_else(|| panic!("taken: {text}")))
}

const LOCAL: Ends = Ends::Unix { peer_pid: None, port: 6432 };

fn tcp(address: &str) -> Ends {
    let remote = match address.contains(':') {
        true => format!("[{address}]:4000"),
        false => format!("{address}:4000"),
    };
    Ends::Tcp {
        remote: remote.parse().expect("an address"),
        local: "127.0.0.1:6432".parse().expect("an address"),
    }
}

/// The number of the line that fits.
fn line(rules: &Rules, ends: Ends, tls: bool, database: &str, user: &str) -> Option<usize> {
    let asked = Asked { user, database, replication: Replication::No, ends: &ends, tls };
    rules.find(&asked).map(|rule| rule.place.line)
}

#[test]
fn words_are_cut_as_postgresql_cuts_them() {
    let texts = |line: &str| -> Vec<Vec<(String, bool)>> {
        let word = |token: tokens::Token| (token.text, token.quoted);
        fields(line).into_iter().map(|field| field.into_iter().map(word).collect()).collect()
    };
    let word = |text: &str, quoted: bool| (text.to_owned(), quoted);
    assert_eq!(texts("  \t # all"), Vec::<Vec<_>>::new());
    assert_eq!(texts("a b\tc\rd"), ["a", "b", "c", "d"].map(|text| vec![word(text, false)]));
    assert_eq!(
        texts("a,b, c d"),
        [vec![word("a", false), word("b", false), word("c", false)], vec![word("d", false)]]
    );
    // A comma with a blank before it begins nothing.
    assert_eq!(texts("a ,b"), ["a", "b"].map(|text| vec![word(text, false)]));
    assert_eq!(
        texts(r#""all" al"l" "a b,#""#),
        [vec![word("all", true)], vec![word("all", false)], vec![word("a b,#", true)]]
    );
    assert_eq!(texts(r#""say ""hi""" """#), [vec![word("say \"hi\"", true)], vec![word("", true)]]);
    assert_eq!(texts("a#b"), [vec![word("a", false)]]);
    assert_eq!(texts("\"open end"), [vec![word("open end", true)]]);
    assert_eq!(fields("ab  cd")[1][0].column, 5);
}

#[test]
fn the_first_line_that_fits_counts() {
    let text = "local all all trust\n\
                hostssl app bob 10.0.0.0/8 scram-sha-256\n\
                hostnossl app bob 10.0.0.0 255.0.0.0 reject\n\
                host sameuser all 192.0.2.7/32 md5\n\
                host all \"all\" 0.0.0.0/0 md5\n\
                hostgssenc all all all trust\n\
                host \"/^db_[0-9]+$\" /^svc_ ::1/128 password\n\
                hostnogssenc last all all md5\n";
    let rules = rules("first", text).expect("they are right");
    assert_eq!(line(&rules, LOCAL, false, "any", "one"), Some(1));
    assert_eq!(line(&rules, tcp("10.1.2.3"), true, "app", "bob"), Some(2));
    assert_eq!(line(&rules, tcp("10.1.2.3"), false, "app", "bob"), Some(3));
    assert_eq!(line(&rules, tcp("::ffff:10.1.2.3"), false, "app", "bob"), Some(3));
    assert_eq!(line(&rules, tcp("192.0.2.7"), false, "x", "x"), Some(4));
    assert_eq!(line(&rules, tcp("192.0.2.8"), false, "x", "x"), None);
    assert_eq!(line(&rules, tcp("192.0.2.8"), false, "x", "all"), Some(5));
    assert_eq!(line(&rules, tcp("::1"), false, "db_12", "svc_a"), Some(7));
    assert_eq!(line(&rules, tcp("::1"), false, "db_12x", "svc_a"), None);
    assert_eq!(line(&rules, tcp("192.0.2.1"), true, "last", "x"), Some(8));
}

#[test]
fn replication_is_a_database_of_its_own() {
    let text = "host replication rep all scram-sha-256\nhost all all all md5\n";
    let rules = rules("replication", text).expect("they are right");
    let ends = tcp("192.0.2.1");
    let find = |user, replication| {
        let asked = Asked { user, database: "replication", replication, ends: &ends, tls: true };
        rules.find(&asked).map(|rule| rule.place.line)
    };
    assert_eq!(find("rep", Replication::Physical), Some(1));
    assert_eq!(find("other", Replication::Physical), None);
    assert_eq!(find("rep", Replication::Logical), Some(2));
    assert_eq!(find("rep", Replication::No), Some(2));
}

#[test]
fn the_same_host_is_this_machine() {
    let text = "host all all samehost trust\nhost all all samenet md5\n";
    let rules = rules("samehost", text).expect("they are right");
    assert_eq!(line(&rules, tcp("127.0.0.1"), false, "a", "b"), Some(1));
    assert_eq!(line(&rules, tcp("127.9.9.9"), false, "a", "b"), Some(2));
    assert_eq!(line(&rules, tcp("198.51.100.7"), false, "a", "b"), None);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let cases = [
        ("host", "1:5: the line ends before the database"),
        ("host all", "1:9: the line ends before the user"),
        ("host all all", "1:13: the line ends before the address"),
        ("host all all 10.0.0.1", "1:22: the line ends before the netmask"),
        ("host all all 10.0.0.0/8", "1:24: the line ends before the authentication method"),
        ("local all all", "1:14: the line ends before the authentication method"),
        ("hosts all all all trust", "1:1: unknown connection type \"hosts\""),
        ("host,local all all all trust", "1:6: more than one connection type"),
        ("host all all 10.0.0.0/33 md5", "1:14: invalid CIDR mask in \"10.0.0.0/33\""),
        ("host all all 10.0.0.0/ md5", "1:14: invalid CIDR mask in \"10.0.0.0/\""),
        ("host all all ::/129 md5", "1:14: invalid CIDR mask in \"::/129\""),
        ("host all all 10.0.0.0 ffff:: md5", "1:23: IP address and mask do not match"),
        ("host all all 10.0.0.0 md5", "1:23: invalid IP mask \"md5\""),
        ("host all all db.example md5", "1:14: \"db.example\" is no IP address"),
        ("host all all .example md5", "1:14: \".example\" is no IP address"),
        ("host samerole all all md5", "1:6: samerole is not supported"),
        ("host all +staff all md5", "1:10: +staff is not supported"),
        ("host all all all pam", "1:18: authentication method \"pam\" is not supported"),
        (
            "host all all all ldap ldapserver=dc.example ldapprefix=\"cn=\"",
            "1:18: authentication method \"ldap\" is not supported",
        ),
        ("host all all all ident", "1:18: authentication method \"ident\" is not supported"),
        ("host all all all scram", "1:18: unknown authentication method \"scram\""),
        ("host all all all peer", "1:18: peer works in local lines only"),
        ("host all all all cert", "1:18: cert works in hostssl lines only"),
        ("host all all all md5 foo", "1:22: \"foo\" is not of the form name=value"),
        ("host all all all md5 foo=1", "1:22: unknown option \"foo\""),
        ("host all all all md5 map=m", "1:22: map works with the methods cert and peer only"),
        (
            "host all all all md5 clientcert=verify-ca",
            "1:22: clientcert works in hostssl lines only",
        ),
        ("hostssl all all all md5 clientcert=1", "1:25: invalid value for clientcert: \"1\""),
        (
            "hostssl all all all cert clientcert=verify-ca",
            "1:26: with cert, clientcert can only be verify-full",
        ),
        ("hostssl all all all cert clientname=X", "1:26: invalid value for clientname: \"X\""),
        ("include nothing", "1:9: can't use"),
        ("host @nothing all all md5", "1:6: can't use"),
        ("# nothing\n", "1:1: it has no line, so that nobody could come in"),
    ];
    for (number, (text, expected)) in cases.into_iter().enumerate() {
        let told = refused(&format!("wrong-{number}"), text);
        assert!(told[0].starts_with(expected), "{text}: {told:?}");
    }
    // All of them at once.
    assert_eq!(refused("all", "host\nlocal all all trust\nhost all\n").len(), 2);
}

#[test]
fn patterns_that_would_mean_something_else_are_refused() {
    for (number, pattern) in
        ["(", "a\\b", "\\<a", "[a[b]", "[a&&b]", "(a)\\1", "(?=a)", "***=a", "a{1000}{1000}"]
            .into_iter()
            .enumerate()
    {
        let told = refused(&format!("p{number}"), &format!("local all \"/{pattern}\" trust"));
        assert!(told[0].contains("invalid regular expression"), "{pattern}: {told:?}");
    }
    let text = "local all \"/^[[:alpha:]_]+$\",\"/^[]x]$\" trust";
    let rules = rules("classes", text).expect("they are right");
    assert_eq!(line(&rules, LOCAL, false, "a", "ab_"), Some(1));
    assert_eq!(line(&rules, LOCAL, false, "a", "]"), Some(1));
    assert_eq!(line(&rules, LOCAL, false, "a", "a]"), None);
}

#[test]
fn files_are_included_in_place_and_their_places_are_told() {
    let place = Place::new("include");
    place.put("users", "alice, bob\n\"carol\" # and\n@more/users\n");
    place.put("more/users", "dave\n");
    place.put("dir/20.conf", "host all all all reject\n");
    place.put("dir/10.conf", "host \\\n  all zed all md5\n");
    place.put("dir/.hidden.conf", "no\n");
    place.put("dir/readme", "no\n");
    let main = place.put(
        "hba",
        "local all @users trust\ninclude_if_exists nowhere\ninclude_dir dir\nlocal all x md5\n",
    );
    let rules = Rules::read(&main).expect("they are right");
    let places: Vec<(String, usize)> = rules
        .rules
        .iter()
        .map(|rule| {
            let name = rule.place.file.rsplit('/').next().unwrap_or_default();
            (name.to_owned(), rule.place.line)
        })
        .collect();
    let expected = [("hba", 1), ("10.conf", 1), ("20.conf", 1), ("hba", 4)];
    assert_eq!(places, expected.map(|(name, line)| (name.to_owned(), line)));
    for user in ["alice", "bob", "carol", "dave"] {
        assert_eq!(line(&rules, LOCAL, false, "a", user), Some(1), "{user}");
    }
    place.put("dir/10.conf", "host all all all what\n");
    let faults = Rules::read(&main).expect_err("one is wrong");
    assert!(faults[0].place.file.ends_with("dir/10.conf"), "{faults:?}");
}

#[test]
fn files_that_include_themselves_end() {
    let place = Place::new("loop");
    let one = place.put("one", "include one\n");
    assert!(told(&Rules::read(&one).expect_err("without end"))[0].contains("10 deep"));
    let two = place.put("two", "local all @two trust\n");
    assert!(told(&Rules::read(&two).expect_err("without end"))[0].contains("10 deep"));
    // Each includes two: the number of files ends it, not the depth.
    let many = place.put("many", "include many\ninclude many\n");
    assert!(Rules::read(&many).expect_err("without end").len() <= 2000);
    let binary = place.put("binary", b"\xff\xfe");
    assert!(told(&Rules::read(&binary).expect_err("not text"))[0].contains("not UTF-8"));
    let nul = place.put("nul", b"local all all\0 trust");
    assert!(told(&Rules::read(&nul).expect_err("not text"))[0].contains("NUL"));
}

fn maps(name: &str, text: &str) -> Result<Maps, Vec<Fault>> {
    Maps::read(&Place::new(name).put("ident", text))
}

#[test]
fn names_are_mapped_as_postgresql_maps_them() {
    let text = "m  root  postgres\n\
                m  \"with space\"  app\n\
                m  /^(.*)@example\\.com$  \\1\n\
                m  /^(.*)@svc$  svc_\\1_x\n\
                m  /^guest  guest\n\
                m  boss  all\n\
                m  wild  /^w_\n\
                other  root  app\n";
    let maps = maps("maps", text).expect("they are right");
    let may = |system: &str, user: &str| maps.check(Some("m"), system, user).is_ok();
    assert!(may("root", "postgres"));
    assert!(!may("root", "app"));
    assert!(may("with space", "app"));
    assert!(may("bob@example.com", "bob"));
    assert!(!may("bob@example.com", "alice"));
    assert!(!may("bob@exampleXcom", "bob"));
    assert!(may("a@svc", "svc_a_x"));
    assert!(!may("a@svc", "svc_b_x"));
    assert!(may("guest17", "guest"));
    assert!(may("boss", "anybody"));
    assert!(may("wild", "w_1") && !may("wild", "x"));
    assert!(maps.check(Some("other"), "root", "app").is_ok());
    assert!(maps.check(Some("none"), "root", "root").is_err());
    assert!(maps.check(None, "root", "root").is_ok());
    assert!(maps.check(None, "root", "app").is_err());
}

#[test]
fn bad_maps_are_told_with_their_place() {
    let cases = [
        ("m", "1:2: the line ends before the system user name"),
        ("m a", "1:4: the line ends before the database user name"),
        ("m a b c", "1:8: the line is not of the form"),
        ("m a,c b", "1:5: more than one system user name"),
        ("m /( b", "1:3: invalid regular expression"),
        ("m /a \\1", "1:6: \\1 needs a group"),
        ("m a +b", "1:5: +b is not supported"),
    ];
    for (number, (text, expected)) in cases.into_iter().enumerate() {
        let faults = maps(&format!("bad-map-{number}"), text).expect_err(text);
        assert!(told(&faults)[0].starts_with(expected), "{text}: {:?}", told(&faults));
    }
}

/// An element of DER.
fn der(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![tag, u8::try_from(value.len()).expect("short")];
    out.extend_from_slice(value);
    out
}

fn attribute(oid: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
    der(0x31, &der(0x30, &[der(6, oid), der(tag, value)].concat()))
}

#[test]
fn subjects_are_written_as_openssl_writes_them() {
    let name = [
        attribute(&[0x55, 4, 6], 0x13, b"DE"),
        attribute(&[0x55, 4, 10], 0x0c, "Söhne, Ltd".as_bytes()),
        attribute(&[0x2a, 3, 4], 0x0c, b"x"),
        attribute(&[0x55, 4, 3], 0x0c, b" #bob\n"),
        attribute(&[0x55, 4, 3], 0x0c, b"second"),
    ]
    .concat();
    let subject = Subject::of_name(&name).expect("a name");
    assert_eq!(subject.common_name.as_deref(), Some(" #bob\n"));
    let expected = "CN=second,CN=\\ #bob\\0A,1.2.3.4=#0C0178,O=S\\C3\\B6hne\\, Ltd,C=DE";
    assert_eq!(subject.distinguished_name, expected);
    // For whom is a name with a NUL?
    let name = attribute(&[0x55, 4, 3], 0x0c, b"bob\0.example");
    assert_eq!(Subject::of_name(&name), None);
    assert_eq!(Subject::of_name(&[]).expect("empty").common_name, None);
}

proptest! {
    /// Any text is rules or faults, whose places are in it.
    #[test]
    fn any_text_is_read(text in "[ -~\\n\\t\\\\\"@#,/\u{e4}]{0,200}", lead in 0..4_usize) {
        let lead = ["", "host all all ", "local all ", "include "][lead];
        let text = format!("{lead}{text}");
        let lines = text.lines().count().max(1);
        let place = Place::new("any");
        let file = place.put("hba", &text);
        for faults in [Rules::read(&file).err(), Maps::read(&file).err()].into_iter().flatten() {
            prop_assert!(!faults.is_empty());
            for fault in faults {
                prop_assert!((1..=lines).contains(&fault.place.line), "{fault:?}");
            }
        }
    }

    #[test]
    fn any_bytes_are_a_subject_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Subject::of_name(&bytes);
        let _ = Subject::of(&rustls_pki_types::CertificateDer::from(bytes));
    }
}

#[test]
fn networks_are_addresses_with_or_without_a_number_of_bits() {
    let has = |net: &str, address: &str| {
        let address: std::net::IpAddr = address.parse().expect("an address");
        Net::parse(net).expect("a network").has(address)
    };
    for (net, inside, outside) in [
        ("10.1.0.0/16", "10.1.255.1", "10.2.0.0"),
        ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
        ("0.0.0.0/0", "203.0.113.1", "::1"),
        ("fd00::/8", "fdff::1", "fe00::1"),
        ("::1", "::1", "::2"),
    ] {
        assert!(has(net, inside) && !has(net, outside), "{net}");
    }
    for text in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "db.example", "10.0.0.0/x", "/8", "all"]
    {
        assert!(Net::parse(text).is_none(), "{text}");
    }
}
