//! How TLS is spoken, towards clients and servers: versions, and how it begins.

use super::report::{Code, Problem};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    V1_2,
    V1_3,
}

/// Which versions of TLS are spoken, the first and the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TlsVersions {
    pub least: TlsVersion,
    pub most: TlsVersion,
}

impl Default for TlsVersions {
    fn default() -> Self {
        TlsVersions { least: TlsVersion::V1_2, most: TlsVersion::V1_3 }
    }
}

/// How TLS towards a server begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsNegotiation {
    /// The server is asked first, in PostgreSQL's protocol.
    Postgres,
    /// With its handshake.
    Direct,
}

impl TlsVersion {
    pub const ALL: [TlsVersion; 2] = [TlsVersion::V1_2, TlsVersion::V1_3];

    /// libpq takes them in any case, too.
    pub(super) fn read(name: &str, text: &str) -> Option<Result<TlsVersion, Problem>> {
        let is = |word: &str| text.eq_ignore_ascii_case(word);
        if let Some(version) = TlsVersion::ALL.into_iter().find(|version| is(version.name())) {
            return Some(Ok(version));
        }
        ["TLSv1", "TLSv1.0", "TLSv1.1"].into_iter().any(is).then(|| {
            let message = format!("`{name}` is {text}, which is not offered");
            Err(Problem::new(Code::OldTls, message)
                .help("TLS 1.0 and 1.1 are broken (RFC 8996); \"TLSv1.2\" is the oldest here"))
        })
    }
}

impl TlsVersions {
    /// What a list of PgBouncer's names, and whether there are older versions in it; none: it is no
    /// such list.
    ///
    /// Source: libtls, tls_config_parse_protocols(3).
    pub(super) fn of_protocols(text: &str) -> Option<(Vec<TlsVersion>, bool)> {
        // Bit by bit: 1.0, 1.1, 1.2, 1.3.
        let mut protocols = 0_u8;
        for word in text.split([',', ':']).map(|word| word.trim_start_matches([' ', '\t'])) {
            let (without, word) = match word.strip_prefix('!') {
                Some(word) => (true, word),
                None => (false, word),
            };
            let named = match word.to_ascii_lowercase().as_str() {
                "all" | "legacy" | "tlsv1" => 0b1111,
                "default" | "secure" => 0b1100,
                "tlsv1.0" => 0b0001,
                "tlsv1.1" => 0b0010,
                "tlsv1.2" => 0b0100,
                "tlsv1.3" => 0b1000,
                _ => return None,
            };
            match without {
                true if protocols == 0 => protocols = 0b1111 & !named,
                true => protocols &= !named,
                false => protocols |= named,
            }
        }
        let ours = [(0b0100, TlsVersion::V1_2), (0b1000, TlsVersion::V1_3)];
        let ours = ours.into_iter().filter(|(bit, _)| protocols & bit != 0);
        Some((ours.map(|(_, version)| version).collect(), protocols & 0b0011 != 0))
    }
}
