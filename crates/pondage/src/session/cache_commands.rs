//! Commands about caches on an ordinary connection: recognised here, answered by the control
//! plane. PostgreSQL knows none of them.

/// What they begin with.
const COMMANDS: [&[&str]; 10] = [
    &["create", "cache"],
    &["drop", "cache"],
    &["drop", "all", "caches"],
    &["explain", "create", "cache"],
    &["show", "caches"],
    &["show", "proxied", "queries"],
    &["show", "streams"],
    &["show", "mirrors"],
    &["mirror", "table"],
    &["drop", "mirror"],
];

/// Whether a text is one. Looks at the first two letters of other texts only; a text that begins
/// with a comment is an other one.
#[inline]
pub fn is_command(text: &[u8]) -> bool {
    match text.trim_ascii_start() {
        [b'c' | b'C', b'r' | b'R', ..]
        | [b'd' | b'D', b'r' | b'R', ..]
        | [b'e' | b'E', b'x' | b'X', ..]
        | [b's' | b'S', b'h' | b'H', ..]
        | [b'm' | b'M', b'i' | b'I', ..] => begins(text),
        _ => false,
    }
}

fn begins(text: &[u8]) -> bool {
    COMMANDS.iter().any(|words| sql::after(text, words).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_recognised_in_any_dress_and_nothing_else_is() {
        for text in [
            "create cache from select 1",
            " CREATE /* a */ Cache x WITH (freshness = strict) FROM SELECT 1;",
            "drop cache x",
            "DROP\tALL\nCACHES",
            "explain create cache from select 1",
            "show caches",
            "Show Proxied Queries",
            "show streams;",
            "show mirrors",
            "mirror table t",
            "Drop Mirror app.t",
        ] {
            assert!(is_command(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "c",
            "create table cache (x int)",
            "create caches",
            "drop table caches",
            "drop all",
            "explain select 1",
            "explain last statement",
            "show cache",
            "show proxied",
            "show search_path",
            "select 'create cache'",
            "-- create cache\nselect 1",
            "merge into t using s on true when matched then do nothing",
        ] {
            assert!(!is_command(text.as_bytes()), "{text}");
        }
    }
}
