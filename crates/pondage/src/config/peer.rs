//! Other Pondages that clients may take for this one: a balancer stands before all of them.

use std::fmt;
use std::path::PathBuf;

/// More than these are refused.
pub const PEERS_MAX: usize = 64;

/// Where another Pondage takes clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Peer {
    /// `host:port`, `[::1]:port` or `unix:/path`.
    pub fn parse(text: &str) -> Option<Peer> {
        if let Some(path) = text.strip_prefix("unix:") {
            return path.starts_with('/').then(|| Peer::Unix(path.into()));
        }
        let (host, port) = text.rsplit_once(':')?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let port = port.parse().ok().filter(|port| *port != 0)?;
        let odd = |letter: char| letter.is_whitespace() || letter.is_control() || letter == '/';
        (!host.is_empty() && !host.contains(odd)).then(|| Peer::Tcp { host: host.to_owned(), port })
    }

    /// A list with commas, or what of it is none.
    ///
    /// # Errors
    /// The part that is no address; the whole, if it has too many.
    pub fn parse_all(text: &str) -> Result<Vec<Peer>, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let peers: Vec<Peer> = parts
            .map(|part| Peer::parse(part).ok_or_else(|| part.to_owned()))
            .collect::<Result<_, _>>()?;
        match peers.len() > PEERS_MAX {
            true => Err(text.to_owned()),
            false => Ok(peers),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Peer::Tcp { host, port } => write!(f, "{host}:{port}"),
            Peer::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let text = "pooler-1:6432, [::1]:1,unix:/run/a b/.s.PGSQL.6432,10.0.0.1:65535";
        let peers = Peer::parse_all(text).expect("addresses");
        let written: Vec<String> = peers.iter().map(ToString::to_string).collect();
        assert_eq!(written.join(","), text.replace(", ", ","));
        assert_eq!(peers[1], Peer::Tcp { host: "::1".to_owned(), port: 1 });
        assert_eq!(Peer::parse_all(""), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_address_is_named() {
        for bad in ["pooler", ":1", "a:0", "a:65536", "a b:1", "unix:run", "/run:1", "a:"] {
            assert_eq!(Peer::parse_all(&format!("a:1,{bad}")), Err(bad.to_owned()));
        }
        let many = vec!["a:1"; PEERS_MAX + 1].join(",");
        assert_eq!(Peer::parse_all(&many), Err(many.clone()));
        assert!(Peer::parse_all(&many[4..]).is_ok());
    }
}
