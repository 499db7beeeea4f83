use super::*;
use crate::session::trace::Engine;

fn sampled() -> Box<Sampled> {
    Box::new(Sampled {
        parent: None,
        text: Text::Unknown,
        database: "app".to_owned(),
        user: "app".to_owned(),
        client_id: 7,
        client: Ends::Unix { peer_pid: None, port: 6432 },
        began: SystemTime::UNIX_EPOCH,
        took: Duration::from_millis(1),
        journey: Journey::new(Engine::Here),
        end: End::Done,
    })
}

#[test]
fn what_does_not_fit_is_dropped_and_counted_and_nobody_waits() {
    let outbox = Outbox::default();
    for _ in 0..QUEUE_MAX + 7 {
        outbox.put(sampled());
    }
    assert_eq!(outbox.counts(), Counts { dropped: 7, ..Counts::default() });
    let mut receiver = outbox.open().expect("the first who asks");
    assert!(outbox.open().is_none());
    assert!(receiver.try_recv().is_ok());
    outbox.put(sampled());
    assert_eq!(outbox.counts().dropped, 7);
}
