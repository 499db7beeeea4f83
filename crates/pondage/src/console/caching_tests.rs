use std::sync::atomic::Ordering;

use backend::replication::plan::{TableStanding, Unfit};

use super::super::command::parse;
use super::super::fixture::{self, Fake};
use super::*;

/// `app` caches, `reports` does not.
const MORE: &str = "[cache]\nuser = \"follower\"\n[databases.more]\ncache = \"manual\"\n";

pub fn operator() -> (Operator, Arc<Fake>) {
    let (fake, _) = Fake::new(fixture::config_and(MORE), 0);
    (Operator::new(fake.clone()), fake)
}

pub fn who(database: &str, admin: bool) -> ConsoleUser {
    let (user, database) = ("web".to_owned(), database.to_owned());
    ConsoleUser { user, database, admin, proven: None }
}

/// Every notice and what came of it: rows, each as its fields, or the failure.
pub async fn run(operator: &Operator, who: &ConsoleUser, text: &str) -> Vec<String> {
    let mut requests = parse(text.as_bytes()).unwrap_or_else(|failure| panic!("{failure:?}"));
    let answer = operator.run(who, requests.remove(0)).await;
    let notices = answer.notices.into_iter().map(|notice| notice.message);
    let words = |value: Value| match value {
        Value::Text(text) => text.into_owned(),
        Value::Int(number) => number.to_string(),
        Value::Tenths(tenths) => format!("{}.{}", tenths / 10, tenths % 10),
        Value::Null => "-".to_owned(),
    };
    let came: Vec<String> = match answer.result {
        Ok(None) => Vec::new(),
        Ok(Some(table)) => table
            .rows
            .into_iter()
            .map(|row| row.into_iter().map(words).collect::<Vec<_>>().join("|"))
            .collect(),
        Err(failure) => {
            let more = [failure.detail, failure.hint].map(Option::unwrap_or_default);
            vec![format!("{} {} / {} / {}", failure.code, failure.message, more[0], more[1])]
        }
    };
    notices.chain(came).collect()
}

#[tokio::test]
async fn a_cache_is_created_seen_and_dropped_on_the_console() {
    let (operator, fake) = operator();
    let root = who("pondage", true);
    let create = "create cache one in database more with (freshness=strict) from select a from t";
    assert!(run(&operator, &root, create).await.is_empty());
    assert_eq!(run(&operator, &root, create).await, ["cache one is there already"]);
    let cache = fake.caches.all().remove(0);
    cache.counters.hits.store(3, Ordering::Relaxed);
    cache.counters.misses.store(1, Ordering::Relaxed);
    let rows = run(&operator, &root, "show caches").await;
    let expected = "one|more|select a from t|manual|strict|5s|3|1|75.0|0|0|";
    assert!(rows[0].starts_with(expected), "{rows:?}");
    assert!(rows[0].ends_with("|waiting|nobody has used the database yet"), "{rows:?}");
    let mut stream = fixture::stream("more");
    stream.state = State::Following;
    *fake.streams.lock().expect("not poisoned") = vec![stream];
    let rows = run(&operator, &root, "show caches").await;
    assert!(rows[0].ends_with("|ready|"), "{rows:?}");
    let table =
        |told| TableStanding { oid: 7, schema: "public".to_owned(), name: "t".to_owned(), told };
    let tables = Arc::new(vec![table(Err(Unfit::Unpublished))]);
    fake.streams.lock().expect("not poisoned")[0].tables = tables;
    let rows = run(&operator, &root, "show caches").await;
    let why = "public.t: it is not in the publication yet";
    assert!(rows[0].ends_with(&format!("|waiting|{why}")), "{rows:?}");
    let said = run(&operator, &root, create).await;
    assert_eq!(said[1], "changes of one of its tables are not followed");
    cache.judged(&Err("table t has no identity".to_owned()));
    let rows = run(&operator, &root, "SHOW CACHES").await;
    assert!(rows[0].ends_with("|refused|table t has no identity"), "{rows:?}");
    assert!(run(&operator, &root, "drop cache one").await.is_empty());
    assert!(run(&operator, &root, "show caches").await.is_empty());
    let gone = run(&operator, &root, "drop cache one").await;
    assert_eq!(gone, ["42704 there is no cache \"one\" /  / SHOW CACHES lists them."]);
}

#[tokio::test]
async fn the_console_has_to_be_told_the_database() {
    let (operator, _) = operator();
    let root = who("pondage", true);
    let which = run(&operator, &root, "create cache from select a from t").await;
    assert!(which[0].starts_with("42601 which database is it about?"), "{which:?}");
    assert!(which[0].ends_with("CREATE CACHE name IN DATABASE app FROM SELECT ..."));
    let unknown = run(&operator, &root, "create cache in database mor from select a from t").await;
    assert_eq!(unknown, ["3D000 no such database: mor /  / Did you mean more?"]);
    let console = "create cache in database pgbouncer from select a from t";
    assert!(run(&operator, &root, console).await[0].starts_with("55000 cannot cache in admin db"));
}

#[tokio::test]
async fn an_ordinary_connection_is_about_its_own_database_and_user() {
    let (operator, fake) = operator();
    let (web, other) = (who("more", true), who("app", true));
    let notices = run(&operator, &web, "create cache from select a from t where b = 5").await;
    assert!(notices[0].starts_with("its name is q_"), "{notices:?}");
    let elsewhere = run(&operator, &web, "drop all caches in database app").await;
    assert!(elsewhere[0].starts_with("0A000 this connection is in database more"));
    assert!(run(&operator, &other, "show caches").await.is_empty(), "not its own");
    assert_eq!(run(&operator, &other, "drop all caches").await, ["0 dropped"]);
    assert_eq!(fake.caches.all().len(), 1);
    let plan = run(&operator, &web, "explain create cache from select a from t").await;
    let table = "table public.t, as web: every row";
    assert_eq!(plan[..2], ["Cacheable: yes", table]);
    assert_eq!(plan[2], "Mirrorable: no, it has no mirror");
    assert_eq!(plan[3], "Followed: not yet, nobody has used the database");
    assert_eq!(run(&operator, &web, "drop all caches").await, ["1 dropped"]);
}

#[tokio::test]
async fn a_plan_says_which_tables_are_not_followed_and_what_mends_it() {
    let (operator, fake) = operator();
    let web = who("more", true);
    let plan = "explain create cache from select a from t";
    let mut stream = fixture::stream("more");
    let look = async |stream: &Standing| {
        *fake.streams.lock().expect("not poisoned") = vec![stream.clone()];
        run(&operator, &web, plan).await.split_off(3)
    };
    assert_eq!(look(&stream).await, ["Followed: no, the stream of changes is being connected"]);
    stream.state = State::Following;
    assert_eq!(look(&stream).await, ["Followed: yes"]);
    let alter = "ALTER TABLE \"public\".\"t\" REPLICA IDENTITY";
    for (unfit, why) in [
        (Unfit::Unpublished, "it is not in the publication yet".to_owned()),
        (Unfit::Nothing, format!("its replica identity is NOTHING: {alter} DEFAULT;")),
        (
            Unfit::NoPrimaryKey,
            format!("it has no primary key that is not deferrable: {alter} FULL;"),
        ),
        (
            Unfit::Foreigner { sql: "ALTER PUBLICATION p ADD TABLE t;".to_owned() },
            "it is not in the publication and another role's: ALTER PUBLICATION p ADD TABLE t;"
                .to_owned(),
        ),
    ] {
        let (schema, name) = ("public".to_owned(), "t".to_owned());
        stream.tables = Arc::new(vec![TableStanding { oid: 7, schema, name, told: Err(unfit) }]);
        assert_eq!(look(&stream).await, ["Followed: no", &format!("Why: public.t: {why}")]);
    }
    let off = run(&operator, &who("app", true), plan).await;
    assert_eq!(off[3], "Followed: no, the cache of database app is off");
}

#[tokio::test]
async fn what_cannot_be_cached_says_why() {
    let (operator, fake) = operator();
    let root = who("pondage", true);
    let refused = run(&operator, &root, "create cache in database more from select now()").await;
    let expected = "0A000 results of this statement can't be cached / \
                    function now() is not immutable / It works as before: PostgreSQL answers it.";
    assert_eq!(refused, [expected]);
    let plan = "explain create cache in database more from select now()";
    let expected = ["Cacheable: no", "Why: function now() is not immutable"];
    assert_eq!(run(&operator, &root, plan).await, expected);
    let away = run(&operator, &root, "create cache in database reports from select a from t").await;
    assert!(away[0].starts_with("08006 the catalogues could not be asked"), "{away:?}");
    assert!(away[0].contains("no route to host"));
    assert!(fake.caches.all().is_empty());
}

#[tokio::test]
async fn a_cache_of_a_database_that_does_not_cache_comes_with_a_warning() {
    let (operator, _) = operator();
    let said = run(&operator, &who("app", true), "create cache a from select a from t").await;
    assert_eq!(said, ["the cache of database app is \"off\""]);
    let rows = run(&operator, &who("app", true), "show caches").await;
    assert!(rows[0].ends_with("|off|"), "{rows:?}");
}

#[tokio::test]
async fn only_administrators_change_something() {
    let (operator, _) = operator();
    let watcher = who("more", false);
    for text in
        ["create cache from select a from t", "drop all caches", "mirror table t", "drop mirror t"]
    {
        let refused = run(&operator, &watcher, text).await;
        assert!(refused[0].starts_with("42501 admin access needed"), "{refused:?}");
    }
    assert!(run(&operator, &watcher, "show caches").await.is_empty());
}

#[test]
fn a_long_statement_is_cut_and_one_with_lines_is_one_line() {
    assert_eq!(shown("select\n  a\tfrom t "), "select a from t");
    let long = shown(&"é ".repeat(QUERY_CHARS_MAX));
    assert_eq!(long.chars().count(), QUERY_CHARS_MAX + 3);
}
