//! The words that stand for closed choices, once for reading, printing and the reference page.

use super::{
    AuthMethod, CacheMode, Calls, ChannelBinding, Coalesce, DurableAck, Freshness, ListenMode,
    ListenTlsMode, LogFormat, PoolMode, ProcedureMode, ServerProtocol, ServerTlsMode,
    TlsNegotiation, TlsVersion, Words,
};

macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal),+) => {
        impl $type {
            /// Every word, in the order of the reference page.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $word),+
                }
            }

            pub fn from_name(word: &str) -> Option<$type> {
                match word {
                    $($word => Some($type::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words!(ListenMode: Shared = "shared", Server = "server");
words!(Coalesce: Off = "off", Pipeline = "pipeline", Batch = "batch");
words!(CacheMode: Off = "off", Advise = "advise", Manual = "manual", Auto = "auto");
words!(Freshness: Session = "session", Strict = "strict", Bounded = "bounded");
words!(Calls: Off = "off", Declared = "declared", Auto = "auto");
words!(ProcedureMode: Off = "off", Lane = "lane", Train = "train", Batch = "batch");
words!(DurableAck: Tail = "tail", Each = "each");
words!(PoolMode: Session = "session", Transaction = "transaction", Statement = "statement");
words!(AuthMethod:
    Scram = "scram",
    ScramOnly = "scram-sha-256",
    Md5 = "md5",
    Password = "password",
    Trust = "trust",
    Any = "any",
    Cert = "cert",
    Peer = "peer",
    Hba = "hba");
words!(ListenTlsMode:
    Disable = "disable",
    Prefer = "prefer",
    Require = "require",
    VerifyClient = "verify-client");
words!(ServerTlsMode:
    Disable = "disable",
    Prefer = "prefer",
    Require = "require",
    VerifyCa = "verify-ca",
    VerifyFull = "verify-full");
words!(ChannelBinding: Disable = "disable", Prefer = "prefer", Require = "require");
words!(ServerProtocol: V3_0 = "3.0", V3_2 = "3.2", Latest = "latest");
words!(TlsNegotiation: Postgres = "postgres", Direct = "direct");
words!(TlsVersion: V1_2 = "TLSv1.2", V1_3 = "TLSv1.3");
words!(LogFormat:
    Auto = "auto",
    Text = "text",
    Logfmt = "logfmt",
    Json = "json",
    Pgbouncer = "pgbouncer");
words!(Words: Pondage = "pondage", Pgbouncer = "pgbouncer");
