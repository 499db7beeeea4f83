//! The types that are tested, and what may be their input.

/// A type, and patterns of its input.
pub struct Type {
    pub name: &'static str,
    /// 0: an enum that the test makes.
    pub oid: u32,
    pub send: &'static str,
    pub patterns: &'static [&'static str],
    /// How many of the inputs that PostgreSQL takes are to be understood at least. Percent.
    pub understood: usize,
}

const FLOATS: &[&str] = &[
    "-?[0-9]{1,3}(\\.[0-9]{1,3})?",
    "-?[0-9]\\.[0-9]{1,20}(e[+-]?[0-9]{1,3})?",
    "-?[1-9][0-9]{0,25}",
    "-?(0|0\\.0|NaN|Infinity|inf|nan)",
    "[1-9](\\.[0-9])?e-?(4|5|6|7|14|15|16|17|37|38|39|44|45|46|307|308|309|323|324|325)",
    "[0-9.eE_+-]{1,6}",
    "[ ]?1\\.?[ ]?",
];

pub const TYPES: &[Type] = &[
    Type {
        name: "smallint",
        oid: 21,
        send: "int2send",
        patterns: &["[ ]?[+-]?0{0,2}[0-9]{1,2}", "-?3276[0-9]", "0x1f|1_0|-?0|-|"],
        understood: 35,
    },
    Type {
        name: "integer",
        oid: 23,
        send: "int4send",
        patterns: &["[+-]?[0-9]{1,10}", "-?214748364[0-9]", "-?[0-9]{1,3}"],
        understood: 60,
    },
    Type {
        name: "bigint",
        oid: 20,
        send: "int8send",
        patterns: &["[+-]?[0-9]{1,20}", "-?9223372036854775[0-9]{2,4}", "-?[0-9]{1,3}"],
        understood: 60,
    },
    Type {
        name: "boolean",
        oid: 16,
        send: "boolsend",
        patterns: &["[ ]?(t|true|TRUE|yes|on|o|1|f|false|n|no|of|off|0|00|)[ ]?"],
        understood: 100,
    },
    Type {
        name: "text",
        oid: 25,
        send: "textsend",
        patterns: &["[ab ]{0,4}", "(ä|é|a|\\\\|'|\t|\u{1}|😀){0,3}", "[a-c]{0,12}"],
        understood: 100,
    },
    Type {
        name: "varchar",
        oid: 1043,
        send: "varcharsend",
        patterns: &["[ab ]{0,4}"],
        understood: 100,
    },
    Type {
        name: "bpchar",
        oid: 1042,
        send: "bpcharsend",
        patterns: &["[ab ]{0,4}[ \t]{0,3}", "(ä|a| ){0,4}", "[ab]{7}[ ]{0,2}[a]?"],
        understood: 100,
    },
    Type {
        name: "bytea",
        oid: 17,
        send: "byteasend",
        patterns: &[
            "\\\\x((00|01|ff|61)){0,5}",
            "\\\\x((00|aB|Ff)){6,10}",
            "\\\\x[0-9a-g ]{0,4}",
            "[ab]{0,2}(\\\\\\\\|\\\\000)?",
        ],
        understood: 50,
    },
    Type {
        name: "uuid",
        oid: 2950,
        send: "uuid_send",
        patterns: &[
            "\\{?(00aA-?|00Aa-?){8}\\}?",
            "(00aa|0b){2}-?00aa-?00aa-?00aa-?00aa00aa00aa",
            "0000000[0-2]-0000-0000-000[01]-0000000000[0-9]{2}",
        ],
        understood: 100,
    },
    Type {
        name: "numeric",
        oid: 1700,
        send: "numeric_send",
        patterns: &[
            "[+-]?0?[0-2]{0,2}\\.?[0-2]{0,2}0{0,2}",
            "-?[0-9]{1,30}(\\.[0-9]{0,30})?",
            "-?(1|10|100|1000|10000|99999|100000000)(\\.0{0,9}1?)?",
            "-?0\\.0{0,12}[1-9]{0,3}0{0,3}",
            "[+-]?(nan|NaN|inf|Infinity|infinity)",
            "[0-9+._eE-]{1,6}",
            "-?[1-9]e[+-]?[0-9]{1,3}",
        ],
        understood: 50,
    },
    Type {
        name: "real",
        oid: 700,
        send: "float4send",
        patterns: FLOATS,
        understood: 60,
    },
    Type {
        name: "double precision",
        oid: 701,
        send: "float8send",
        patterns: FLOATS,
        understood: 60,
    },
    Type {
        name: "date",
        oid: 1082,
        send: "date_send",
        patterns: &[
            "(1999|2000|2024|0001|12024|1900)-(0[1-3]|12)-(0[1-3]|[23][0-9])( BC)?",
            "-?(infinity|Infinity|epoch|inf|now|today)",
            "2024-02-29( 23:00|T10:00:00)",
            "[0-9]{4,7}-(02|12)-(28|29|31)( BC)?",
            "(5874897-12-31|5874898-01-01|4714-11-2[34] BC)",
        ],
        understood: 15,
    },
    Type {
        name: "timestamp",
        oid: 1114,
        send: "timestamp_send",
        patterns: &[
            "(1999|2000|0001|29999)-(0[1-3]|12)-(0[1-3]|3[01])[ T](00|11|23|24):(00|30|59)( BC)?",
            "2024-02-29 (00|23|24):(00|59):(00|59|60)(\\.[0-9]{0,8})?",
            "(1994|2024|1)-02-28( 00:00| 12:30)?(:00)?(\\.[05]{1,6})?",
            "29427[5-8]-(01|12)-(01|31)( 00:00:00| 23:59:59\\.999999)?",
            "-?infinity|now|4714-11-2[34] 00:00:00 BC",
        ],
        understood: 40,
    },
    Type {
        name: "timestamptz",
        oid: 1184,
        send: "timestamptz_send",
        patterns: &[
            "2024-(01|07)-01[ T](00|05|10|23):(00|30)(:00)?(Z|[+-]0[0-6](:[03]0)?)?",
            "(1850|1999|0001)-02-2[0-9] 10:00:00(\\.[0-9]{1,6})?[+-](00|05|15|16)(:30|:[0-5]0:[0-5]0)?",
            "(294276|294277)-(01|12)-(01|31) (00|09|12|23):00:00[+-](00|15)",
            "-?infinity|2024-02-29 10:00 PST|0044-03-15 10:00:00\\+00 BC",
        ],
        understood: 40,
    },
    Type {
        name: "time",
        oid: 1083,
        send: "time_send",
        patterns: &[
            "(00|4|04|23|24):(00|1|59):(00|5|59|60)(\\.[0-9]{0,8})?",
            "(23:59:59\\.999999|24:00:00|0400|04:05|noon|now)",
            "[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[05]{1,6})?",
        ],
        understood: 30,
    },
    Type {
        name: "timetz",
        oid: 1266,
        send: "timetz_send",
        patterns: &[
            "(00|04|23|24):(00|59):(00|59|60)(\\.[0-9]{0,7})?[+-](00|01|05|15|16)(:[0-6]0(:[0-6]0)?)?",
            "0[0-5]:00:00[+-]0[0-5]",
            "04:00:00(Z|[+-]5|[+-]0530| UTC|\\+00:|\\+05:3)?",
        ],
        understood: 60,
    },
    Type {
        name: "interval",
        oid: 1186,
        send: "interval_send",
        patterns: &[
            "([1-9][0-9]? years?)?[ ]?([0-9]{1,2} mons?)?[ ]?([0-9]{1,2} days?)?[ ]?([0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,6})?)?",
            "(1 year )?-?[0-3] mons? [+-]?[0-9]{1,2} days?( [+-]?0[0-9]:00:0[0-9](\\.[0-9]{1,7})?)?",
            "-?(30 days|1 mon|24:00:00|1 day|720:00:00|29 days 24:00:00)",
            "[0-9]{1,9} (years|days|mons)( [0-9]{1,12}:00:00)?",
            "[0-9]{1,3}( [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}\\.?)?",
            "1 day 2 days|1 mon 1 year|P1Y2M|@ 1 day ago| 1 day| ",
        ],
        understood: 20,
    },
    Type {
        name: "mood",
        oid: 0,
        send: "enum_send",
        patterns: &["(zebra|apple|ä b|Mule|apples|)"],
        understood: 100,
    },
];

/// In order.
pub const LABELS: [&str; 4] = ["zebra", "apple", "ä b", "Mule"];
