use super::*;
use crate::export::parent::Parent;
use crate::export::Text;
use crate::session::trace::Journey;

fn sampled(sql: &str, engine: Engine) -> Box<Sampled> {
    let ends = |remote: &str| Ends::Tcp {
        remote: remote.parse().expect("an address"),
        local: "10.0.0.9:1".parse().expect("an address"),
    };
    let millis = Duration::from_millis;
    Box::new(Sampled {
        parent: None,
        text: Text::Own(sql.as_bytes().into()),
        database: "shop".to_owned(),
        user: "web".to_owned(),
        client_id: 7,
        client: ends("10.0.0.5:41000"),
        began: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        took: millis(10),
        journey: Journey {
            wait: millis(3),
            set_up: millis(1),
            at_server: millis(6),
            server: Some((ends("10.0.0.1:5432"), 4711)),
            ..Journey::new(engine)
        },
        end: End::Done,
    })
}

fn made(sampled: Box<Sampled>) -> Vec<Value> {
    let request = request(&[sampled]);
    let spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array();
    spans.expect("spans").clone()
}

fn value<'a>(span: &'a Value, key: &str) -> Option<&'a Value> {
    let all = span["attributes"].as_array().expect("attributes");
    let found = all.iter().find(|pair| pair["key"] == key)?;
    found["value"].as_object().and_then(|value| value.values().next())
}

#[test]
fn a_statement_has_a_span_with_its_parts_below() {
    let spans = made(sampled("select * from Accounts where id = 'secret'", Engine::Pool));
    let names: Vec<_> = spans.iter().filter_map(|span| span["name"].as_str()).collect();
    assert_eq!(names, ["SELECT accounts", "SELECT accounts", "set up", "wait"]);
    let whole = &spans[0];
    assert_eq!((&whole["kind"], &whole["parentSpanId"]), (&json!(2), &json!("")));
    for part in &spans[1..] {
        assert_eq!(
            (&part["traceId"], &part["parentSpanId"]),
            (&whole["traceId"], &whole["spanId"])
        );
    }
    for span in &spans {
        assert_eq!(span["traceId"].as_str().map(str::len), Some(32));
        assert_eq!(span["spanId"].as_str().map(str::len), Some(16));
        assert_eq!(span["status"], json!({}));
    }
    for (key, expected) in [
        ("db.system.name", json!("postgresql")),
        ("db.namespace", json!("shop")),
        ("db.operation.name", json!("SELECT")),
        ("db.query.summary", json!("SELECT accounts")),
        ("db.query.text", json!("select*from accounts where id=$1")),
        ("server.address", json!("10.0.0.1")),
        ("server.port", json!("5432")),
        ("client.address", json!("10.0.0.5")),
        ("pondage.engine", json!("pool")),
        ("pondage.wait_seconds", json!(0.003)),
        ("pondage.user", json!("web")),
    ] {
        assert_eq!(value(whole, key), Some(&expected), "{key}");
    }
    let times = |span: &Value| {
        ["startTimeUnixNano", "endTimeUnixNano"]
            .map(|key| span[key].as_str().and_then(|text| text.parse().ok()).unwrap_or(0u64))
    };
    let start = 1_700_000_000_000_000_000;
    assert_eq!(times(whole), [start, start + 10_000_000]);
    assert_eq!(times(&spans[1]), [start + 4_000_000, start + 10_000_000]);
    assert_eq!(times(&spans[2]), [start + 3_000_000, start + 4_000_000]);
    assert_eq!(times(&spans[3]), [start, start + 3_000_000]);
}

#[test]
fn no_value_is_told_and_what_cannot_be_read_is_not() {
    for sql in ["select 'secret", "select $$secret", &format!("select '{}'", "secret".repeat(4000))]
    {
        let spans = made(sampled(sql, Engine::Pool));
        assert_eq!(spans[0]["name"], "postgresql", "{sql:.40}");
        assert!(!json!(spans).to_string().contains("secret"), "{sql:.40}");
    }
    for (sql, name) in [
        ("INSERT INTO s.t VALUES (1, 'secret')", "INSERT s.t"),
        ("update only t set n = 'secret'", "UPDATE t"),
        ("delete from t where n = 'secret'", "DELETE t"),
        ("call pay(1, 'secret')", "CALL pay"),
        ("select 'secret'", "SELECT"),
        ("select * from (select 'secret') x", "SELECT"),
        ("begin", "BEGIN"),
        ("select 1 /* secret */", "SELECT"),
    ] {
        let spans = made(sampled(sql, Engine::Pool));
        assert_eq!(spans[0]["name"], name, "{sql}");
        assert!(!json!(spans).to_string().contains("secret"), "{sql}");
    }
}

#[test]
fn errors_and_lost_connections_are_errors() {
    let of = |end| {
        let mut sampled = sampled("select 1", Engine::Trip(5));
        sampled.end = end;
        made(sampled)
    };
    for span in &of(End::Failed(*b"23505"))[..2] {
        assert_eq!(span["status"], json!({ "code": 2 }));
        assert_eq!(value(span, "error.type"), Some(&json!("23505")));
        assert_eq!(value(span, "db.response.status_code"), Some(&json!("23505")));
    }
    let lost = &of(End::Lost)[0];
    assert_eq!(value(lost, "error.type"), Some(&json!("connection_lost")));
    assert_eq!(value(lost, "db.response.status_code"), None);
    assert_eq!(value(lost, "pondage.company"), Some(&json!("5")));
}

#[test]
fn an_answer_from_memory_tells_its_freshness_and_no_server() {
    let fresh = Fresh { lsn: 0x1_0000_00ab, age: Some(Duration::from_millis(3)) };
    let mut kept = sampled("select 1", Engine::Cache(fresh));
    let wait = Duration::from_millis(2);
    kept.journey = Journey { cache_wait: wait, ..Journey::new(Engine::Cache(fresh)) };
    let (trace, span) = ([0xab; 16], [0xcd; 8]);
    kept.parent = Some(Parent { trace, span, sampled: true });
    let spans = made(kept);
    assert_eq!(spans.len(), 2);
    assert_eq!(spans[1]["name"], "cache");
    assert_eq!(
        (&spans[0]["traceId"], &spans[0]["parentSpanId"]),
        (&json!("ab".repeat(16)), &json!("cd".repeat(8)))
    );
    for (key, expected) in [
        ("pondage.fresh_lsn", json!("1/AB")),
        ("pondage.fresh_seconds", json!(0.003)),
        ("pondage.wait_seconds", json!(0.002)),
    ] {
        assert_eq!(value(&spans[0], key), Some(&expected), "{key}");
    }
    assert_eq!(value(&spans[0], "server.address"), None);
}
