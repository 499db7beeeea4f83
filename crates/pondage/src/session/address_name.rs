//! A client's address in its application_name, where PostgreSQL shows it.

use core::net::SocketAddr;

use crate::hba::NAME_BYTES_MAX;
use crate::link::Ends;

const NAME: &str = "application_name";

/// Of who gives no name. Source: `set_appname` of PgBouncer.
const NAMELESS: &str = "app";

/// Gives `settings` the name that they have, or else `preset`, with the address behind it. A name
/// gives way where both are more than PostgreSQL shows.
pub fn add(settings: &mut Vec<(String, String)>, preset: Option<&str>, ends: &Ends) {
    let is_name = |setting: &(String, String)| setting.0.eq_ignore_ascii_case(NAME);
    let said =
        settings.iter().rev().find(|setting| is_name(setting)).map(|(_, name)| name.as_str());
    let names = [said, preset].into_iter().flatten();
    let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or(NAMELESS);
    let address = match ends {
        Ends::Tcp { remote, .. } => {
            SocketAddr::new(remote.ip().to_canonical(), remote.port()).to_string()
        }
        Ends::Unix { port, .. } => format!("unix:{port}"),
    };
    let room = NAME_BYTES_MAX.saturating_sub(address.len() + " - ".len());
    let end = (0..=room.min(name.len())).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
    let named = format!("{} - {address}", &name[..end]);
    settings.retain(|setting| !is_name(setting));
    settings.push((NAME.to_owned(), named));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(given: &[(&str, &str)], preset: Option<&str>, ends: &Ends) -> Vec<(String, String)> {
        let mut settings: Vec<_> =
            given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        add(&mut settings, preset, ends);
        settings
    }

    fn from(remote: &str) -> Ends {
        let end = |text: &str| text.parse().expect("an address");
        Ends::Tcp { remote: end(remote), local: end("127.0.0.1:6432") }
    }

    #[test]
    fn the_address_stands_behind_the_name() {
        let ends = from("192.0.2.7:51234");
        let name = |settings: &[(String, String)]| settings[settings.len() - 1].1.clone();
        for (given, preset, expected) in [
            (&[("application_name", "web")][..], None, "web - 192.0.2.7:51234"),
            (&[("Application_Name", "web")], Some("pool"), "web - 192.0.2.7:51234"),
            (&[], Some("pool"), "pool - 192.0.2.7:51234"),
            (&[("application_name", "")], None, "app - 192.0.2.7:51234"),
            (
                &[("application_name", "a"), ("TimeZone", "UTC"), ("application_name", "b")],
                None,
                "b - 192.0.2.7:51234",
            ),
        ] {
            assert_eq!(name(&named(given, preset, &ends)), expected);
        }
        let two = [("application_name", "a"), ("TimeZone", "UTC"), ("application_name", "b")];
        assert_eq!(named(&two, None, &ends)[0], ("TimeZone".to_owned(), "UTC".to_owned()));
        assert_eq!(named(&two, None, &ends).len(), 2);
        assert_eq!(name(&named(&[], None, &from("[::1]:7"))), "app - [::1]:7");
        assert_eq!(name(&named(&[], None, &from("[::ffff:10.0.0.1]:7"))), "app - 10.0.0.1:7");
        let unix = Ends::Unix { peer_pid: None, port: 6432 };
        assert_eq!(name(&named(&[], None, &unix)), "app - unix:6432");
    }

    #[test]
    fn a_long_name_gives_way_to_the_address() {
        let long = "\u{e9}".repeat(40);
        let ends = from("[2001:db8:1111:2222:3333:4444:5555:6666]:51234");
        let settings = named(&[("application_name", &long)], None, &ends);
        let name = &settings[0].1;
        assert!(name.ends_with(" - [2001:db8:1111:2222:3333:4444:5555:6666]:51234"), "{name}");
        assert!(name.len() <= NAME_BYTES_MAX && name.starts_with('\u{e9}'), "{name}");
    }
}
