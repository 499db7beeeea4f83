use std::sync::Arc;

use backend::replication::plan::{TableStanding, Unfit};

use super::super::caching::tests::{operator, run, who};
use super::super::fixture::{self, Fake};
use super::*;

#[tokio::test]
async fn a_mirror_is_commanded_seen_and_dropped() {
    let (operator, fake) = operator();
    let root = who("pondage", true);
    let mirror = "mirror table t columns (a, b) in database more";
    assert!(run(&operator, &root, mirror).await.is_empty());
    assert_eq!(run(&operator, &root, mirror).await, ["public.t is to be mirrored already"]);
    let other = run(&operator, &root, "mirror table public.t columns (a) in database more").await;
    assert_eq!(other, ["mirror of public.t gets other columns"]);
    let rows = run(&operator, &root, "show mirrors").await;
    let why = "nobody has used the database yet";
    assert_eq!(rows, [format!("more|public.t|a|waiting|{why}|yes|0|0||-")]);
    let mut stream = fixture::stream("more");
    stream.state = stream::State::Following;
    *fake.streams.lock().expect("not poisoned") = vec![stream];
    let ready = ("more".to_owned(), fixture::mirror(State::Ready));
    let copying = fixture::mirror(State::Copying { done: 1, total: 8 });
    let copying = ("more".to_owned(), MirrorInfo { oid: 8, name: "u".to_owned(), ..copying });
    *fake.mirrors.lock().expect("not poisoned") = vec![copying, ready];
    let rows = run(&operator, &who("more", true), "SHOW MIRRORS").await;
    assert!(rows.contains(&"more|public.t|a, b|ready||yes|3|64|a|100.0".to_owned()), "{rows:?}");
    assert!(rows.contains(&"more|public.u|a, b|copying||yes|3|64|a|12.5".to_owned()), "{rows:?}");
    assert!(run(&operator, &who("app", true), "show mirrors").await.is_empty(), "not its own");
    assert!(run(&operator, &root, "drop mirror t").await.is_empty());
    let gone = run(&operator, &root, "drop mirror t in database more").await;
    assert!(gone[0].starts_with("42704 nobody has asked for a mirror of t / "), "{gone:?}");
}

#[tokio::test]
async fn what_cannot_be_mirrored_says_why() {
    let (operator, fake) = operator();
    let root = who("pondage", true);
    let gone = run(&operator, &root, "mirror table u in database more").await;
    assert_eq!(gone, ["42P01 there is no table u /  / Say its schema."]);
    let away = run(&operator, &root, "mirror table t in database reports").await;
    assert!(away[0].starts_with("08006 the catalogues could not be asked"), "{away:?}");
    let which = run(&operator, &root, "mirror table t").await;
    assert!(which[0].starts_with("42601 which database is it about?"), "{which:?}");
    let off = run(&operator, &who("app", true), "mirror table t").await;
    assert_eq!(off, ["the cache of database app is \"off\""]);
    let rows = run(&operator, &who("app", true), "show mirrors").await;
    assert_eq!(rows, ["app|public.t||off||yes|0|0||-"]);
    assert_eq!(fake.pins.all().len(), 1);
    let none =
        "[cache]\nuser = \"follower\"\nmirror_memory = \"0B\"\n[databases.more]\ncache = \"auto\"\n";
    let (fake, _) = Fake::new(fixture::config_and(none), 0);
    let refused = run(&Operator::new(fake), &who("more", true), "mirror table t").await;
    assert!(refused[0].starts_with("55000 there is no memory for mirrors"), "{refused:?}");
}

#[tokio::test]
async fn a_table_that_is_not_followed_says_what_mends_it() {
    let (operator, fake) = operator();
    let mut stream = fixture::stream("more");
    stream.state = stream::State::Following;
    let (schema, name) = ("public".to_owned(), "t".to_owned());
    let told = Err(Unfit::Unpublished);
    stream.tables = Arc::new(vec![TableStanding { oid: 7, schema, name, told }]);
    *fake.streams.lock().expect("not poisoned") = vec![stream];
    let said = run(&operator, &who("more", true), "mirror table t").await;
    assert_eq!(said, ["changes of the table are not followed"]);
}
