//! What a mirror is, as `MIRROR TABLE` and `mirrors` in the configuration say it:
//!
//! ```text
//! [schema.]table [COLUMNS (name, ...)] [IN DATABASE name]
//! ```

use std::fmt;

use super::definition::Head;

/// PostgreSQL's tables have no more columns. Source: `MaxHeapAttributeNumber` in
/// access/htup_details.h.
const COLUMNS_MAX: usize = 1_600;

/// A table of which columns are to be mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorDefinition {
    pub table: TableName,
    /// None: all.
    pub columns: Option<Vec<String>>,
    /// None: the one it was said in.
    pub database: Option<String>,
}

/// A table as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// None: where the search_path finds it.
    pub schema: Option<String>,
    pub name: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl TableName {
    /// # Errors
    /// It is none.
    pub fn take(head: &mut Head<'_>) -> Result<TableName, String> {
        let first = head.name().ok_or("expected the name of a table")?;
        if !head.sign('.') {
            return Ok(TableName { schema: None, name: first });
        }
        let name = head.name().ok_or("expected the name of a table behind its schema")?;
        Ok(TableName { schema: Some(first), name })
    }
}

impl MirrorDefinition {
    /// Reads an entry of `mirrors`.
    ///
    /// # Errors
    /// What is wrong, in a few words.
    pub fn configured(text: &str) -> Result<MirrorDefinition, String> {
        let mirror = MirrorDefinition::parse(text)?;
        match &mirror.database {
            None => Ok(mirror),
            Some(_) => Err("its database is the one whose section it is in".to_owned()),
        }
    }

    /// Reads what follows `MIRROR TABLE`.
    ///
    /// # Errors
    /// What is wrong, in a few words.
    pub fn parse(text: &str) -> Result<MirrorDefinition, String> {
        let mut head = Head::new(text);
        let table = TableName::take(&mut head)?;
        let columns = if head.takes("columns") { Some(columns(&mut head)?) } else { None };
        let database = head.database().ok_or("IN is followed by DATABASE and a name")?;
        match head.is_done() {
            true => Ok(MirrorDefinition { table, columns, database }),
            false => Err("expected COLUMNS (...), IN DATABASE, or nothing more".to_owned()),
        }
    }
}

fn columns(head: &mut Head<'_>) -> Result<Vec<String>, String> {
    if !head.sign('(') {
        return Err("COLUMNS is followed by names in parentheses".to_owned());
    }
    let mut names = Vec::new();
    loop {
        let name = head.name().ok_or("expected the name of a column")?;
        if names.contains(&name) {
            return Err(format!("column {name} is said twice"));
        }
        if names.len() == COLUMNS_MAX {
            return Err(format!("more than {COLUMNS_MAX} columns"));
        }
        names.push(name);
        if head.sign(')') {
            return Ok(names);
        }
        if !head.sign(',') {
            return Err("names of columns end with a parenthesis".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_columns_or_some_of_a_table_in_a_schema_or_not() {
        let read = |text| MirrorDefinition::parse(text).expect("a mirror");
        let bare = read(" Orders ;");
        assert_eq!(bare.table.to_string(), "orders");
        assert_eq!((bare.columns, bare.database), (None, None));
        let all = read("app . \"My Table\" columns ( id, \"B\" ) in database web");
        assert_eq!(all.table.to_string(), "app.My Table");
        assert_eq!(all.columns, Some(vec!["id".to_owned(), "B".to_owned()]));
        assert_eq!(all.database.as_deref(), Some("web"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("", "expected the name of a table"),
            ("app.", "expected the name of a table behind its schema"),
            ("t columns", "COLUMNS is followed by names in parentheses"),
            ("t columns ()", "expected the name of a column"),
            ("t columns (a a)", "names of columns end with a parenthesis"),
            ("t columns (a, a)", "column a is said twice"),
            ("t in web", "IN is followed by DATABASE and a name"),
            ("t where a = 5", "expected COLUMNS (...), IN DATABASE, or nothing more"),
        ] {
            assert_eq!(MirrorDefinition::parse(text).expect_err(text), why);
        }
        let why = MirrorDefinition::configured("t in database web").expect_err("another's");
        assert_eq!(why, "its database is the one whose section it is in");
    }
}
