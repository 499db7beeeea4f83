use super::*;
use crate::console::fixture;
use crate::procedures::{Call, Procedures};
use crate::route::Share;
use crate::route::Writes;
use backend::statement::Numbers;

fn scanned(text: &str) -> Scan {
    let mut scan = Scan::default();
    assert!(scan.scan(text.as_bytes()), "{text}");
    scan
}

fn judged(shapes: &mut Shapes, scan: &Scan, uses: &[Use]) -> u32 {
    let id = shapes.of(scan.shape());
    let shape = shapes.get_mut(id).expect("just made");
    assert!(shape.ask(Moment(1)));
    let reason = String::new();
    let literals = Some(uses.into());
    shape.judged(Some(Box::new(Verdict {
        share: Share::Batch,
        reason,
        literals,
        cache: Err(String::new()),
        writes: Writes::Anything,
        call: None,
        row: None,
    })));
    id
}

#[test]
fn constants_become_parameters_or_stay() {
    let (mut shapes, mut registry) = (Shapes::default(), Registry::new(Numbers::default()));
    let text = "select a from t where b = 7 and c = 'it''s' limit 5";
    let scan = scanned(text);
    let uses = [Use::Parameter(23), Use::Parameter(0), Use::Fixed];
    let id = judged(&mut shapes, &scan, &uses);
    let mut values = Vec::new();
    let statement = shapes
        .stand_in(id, text.as_bytes(), &scan, &mut registry, &mut values)
        .expect("it is judged");
    let query = String::from_utf8_lossy(&statement.query);
    assert_eq!(query, "select a from t where b = $1 and c = $2 limit 5");
    assert_eq!(*statement.types, *b"\0\x02\0\0\0\x17\0\0\0\0");
    assert_eq!(values, b"\0\0\0\x02\0\0\0\x017\0\0\0\x04it's\0\0");

    let other = "select a from t where b = 8 and c = '' limit 5";
    let again = shapes
        .stand_in(id, other.as_bytes(), &scanned(other), &mut registry, &mut values)
        .expect("the same");
    assert_eq!(again.id, statement.id);
}

#[test]
fn a_shape_with_too_many_texts_is_sent_as_it_comes() {
    let (mut shapes, mut registry) = (Shapes::default(), Registry::new(Numbers::default()));
    let mut made = 0;
    for limit in 0..100 {
        let text = format!("select a from t limit {limit}");
        let scan = scanned(&text);
        let id = match limit {
            0 => judged(&mut shapes, &scan, &[Use::Fixed]),
            _ => shapes.of(scan.shape()),
        };
        let mut values = Vec::new();
        let statement = shapes.stand_in(id, text.as_bytes(), &scan, &mut registry, &mut values);
        made += u32::from(statement.is_some());
    }
    assert_eq!(made, VARIANTS_MAX);
}

#[test]
fn the_shapes_used_least_recently_make_room() {
    let mut shapes = Shapes::default();
    let kept = shapes.of(b"kept");
    let dropped = shapes.of(b"dropped");
    for at in 0..SHAPES_MAX {
        shapes.of(format!("shape {at}").as_bytes());
        shapes.of(b"kept");
    }
    assert_eq!(shapes.of(b"kept"), kept);
    assert!(shapes.get(kept).is_some() && shapes.get(dropped).is_none());
    assert!(shapes.iter().count() <= SHAPES_MAX);
}

#[test]
fn a_procedure_is_told_what_its_calls_came_to_whatever_becomes_of_verdict_and_shape() {
    let procedures = Procedures::default();
    let called = |oid| {
        let procedure = fixture::procedure(&procedures, "app", oid, "payment");
        Some(Arc::new(Call { procedure, arguments: Vec::new() }))
    };
    let mut shapes = Shapes::default();
    let id = shapes.of(b"call payment(\x01)");
    let judge = |shapes: &mut Shapes, now, call| {
        let shape = shapes.get_mut(id).expect("kept");
        shape.calls += 1;
        shape.time.record(70);
        assert!(shape.ask(Moment(now)));
        let verdict = Verdict {
            share: Share::Alone,
            reason: String::new(),
            literals: None,
            cache: Err(String::new()),
            writes: Writes::Anything,
            call,
            row: None,
        };
        shape.judged(Some(Box::new(verdict)));
    };
    let told = |oid| {
        let list = procedures.list();
        list.iter().find(|one| one.oid == oid).expect("known").fared().calls
    };
    judge(&mut shapes, 1, called(7));
    assert_eq!(told(7), 0, "nobody has looked yet");
    shapes.tell();
    shapes.tell();
    assert_eq!(told(7), 1, "that from before it was known counts, and counts once");
    shapes.redefined();
    shapes.get_mut(id).expect("kept").calls += 1;
    shapes.tell();
    assert_eq!(told(7), 2);
    judge(&mut shapes, 2, called(8));
    assert_eq!((told(7), told(8)), (3, 0), "what came before is the other's");
    shapes.get_mut(id).expect("kept").calls += 1;
    for at in 0..SHAPES_MAX {
        shapes.of(format!("shape {at}").as_bytes());
    }
    assert!(shapes.get(id).is_none());
    assert_eq!(told(8), 1, "it told when it went");
}

#[test]
fn a_verdict_from_before_a_change_does_not_count() {
    let mut shapes = Shapes::default();
    let scan = scanned("select 1");
    let id = shapes.of(scan.shape());
    assert!(shapes.get_mut(id).is_some_and(|shape| shape.ask(Moment(1))));
    assert!(!shapes.get_mut(id).is_some_and(|shape| shape.ask(Moment(1))), "one at a time");
    shapes.redefined();
    let verdict = Verdict {
        share: Share::Batch,
        reason: String::new(),
        literals: None,
        cache: Err(String::new()),
        writes: Writes::Anything,
        call: None,
        row: None,
    };
    let shape = shapes.get_mut(id).expect("known");
    shape.judged(Some(Box::new(verdict.clone())));
    assert!(shape.verdict.is_none());
    assert!(shape.ask(Moment(2)));
    shape.judged(Some(Box::new(verdict)));
    assert!(shape.verdict.is_some());
}
