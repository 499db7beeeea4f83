//! Names of character encodings: PostgreSQL takes many spellings and reports one.

/// What PostgreSQL reports when `value` is asked for as `client_encoding`; what it does not know
/// stays as it is, for the server to refuse.
///
/// Source: `pg_encname_tbl` and `clean_encoding_name`, which ignores all but letters and digits.
pub fn as_reported(value: &str) -> String {
    let bare: String = value
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    if let Some((_, name)) = ALIASES.iter().find(|(alias, _)| *alias == bare) {
        return (*name).to_owned();
    }
    for family in ["win", "windows"] {
        let page = bare.strip_prefix(family);
        if let Some(page) = page.filter(|page| WINDOWS.contains(page)) {
            return format!("WIN{page}");
        }
    }
    let plain = PLAIN.iter().find(|name| name.eq_ignore_ascii_case(&bare));
    plain.map_or_else(|| value.to_owned(), |name| (*name).to_owned())
}

/// Names that are reported as they are spelled, but for the case of their letters.
const PLAIN: &[&str] = &[
    "BIG5", "GB18030", "GBK", "JOHAB", "KOI8R", "KOI8U", "LATIN1", "LATIN2", "LATIN3", "LATIN4",
    "LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9", "LATIN10", "SJIS", "UHC", "UTF8",
];

const WINDOWS: &[&str] =
    &["866", "874", "1250", "1251", "1252", "1253", "1254", "1255", "1256", "1257", "1258"];

const ALIASES: &[(&str, &str)] = &[
    ("abc", "WIN1258"),
    ("alt", "WIN866"),
    ("euccn", "EUC_CN"),
    ("eucjis2004", "EUC_JIS_2004"),
    ("eucjp", "EUC_JP"),
    ("euckr", "EUC_KR"),
    ("euctw", "EUC_TW"),
    ("iso88591", "LATIN1"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88595", "ISO_8859_5"),
    ("iso88596", "ISO_8859_6"),
    ("iso88597", "ISO_8859_7"),
    ("iso88598", "ISO_8859_8"),
    ("iso88599", "LATIN5"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
    ("koi8", "KOI8R"),
    ("mskanji", "SJIS"),
    ("muleinternal", "MULE_INTERNAL"),
    ("shiftjis", "SJIS"),
    ("shiftjis2004", "SHIFT_JIS_2004"),
    ("sqlascii", "SQL_ASCII"),
    ("tcvn", "WIN1258"),
    ("tcvn5712", "WIN1258"),
    ("unicode", "UTF8"),
    ("vscii", "WIN1258"),
    ("win", "WIN1251"),
    ("win932", "SJIS"),
    ("win936", "GBK"),
    ("win949", "UHC"),
    ("win950", "BIG5"),
    ("windows932", "SJIS"),
    ("windows936", "GBK"),
    ("windows949", "UHC"),
    ("windows950", "BIG5"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_reported_as_postgresql_reports_it() {
        for (asked, reported) in [
            ("utf-8", "UTF8"),
            // As asyncpg says it.
            ("'utf-8'", "UTF8"),
            ("Unicode", "UTF8"),
            ("Shift_JIS", "SJIS"),
            ("sql_ascii", "SQL_ASCII"),
            ("ISO-8859-1", "LATIN1"),
            ("latin-10", "LATIN10"),
            ("windows-1252", "WIN1252"),
            ("win866", "WIN866"),
            ("KOI8-R", "KOI8R"),
            ("no such", "no such"),
            ("", ""),
        ] {
            assert_eq!(as_reported(asked), reported, "{asked}");
        }
    }
}
