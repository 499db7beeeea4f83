use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::config::Config;
use crate::console::fixture::{self, Fake, Inbox};
use crate::console::operator::Operator;
use crate::console::Condition;
use crate::worker::snapshot::WorkerSnapshot;

/// Long enough that only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A door with one worker, and that worker's messages.
async fn open() -> (SocketAddr, Arc<Fake>, Inbox, tokio::task::JoinHandle<io::Result<()>>) {
    let (address, fake, inbox, _, door) = open_with("127.0.0.1:0", fixture::config()).await;
    (address, fake, inbox, door)
}

type Opened = (SocketAddr, Arc<Fake>, Inbox, Arc<Site>, tokio::task::JoinHandle<io::Result<()>>);

pub async fn open_with(at: &str, config: Config) -> Opened {
    let (fake, mut inboxes) = Fake::new(config, 1);
    let listener = TcpListener::bind(at).await.unwrap();
    let address = listener.local_addr().unwrap();
    let site = Arc::new(Site::new(fake.clone(), Arc::new(Operator::new(fake.clone()))));
    let door = tokio::spawn(serve(listener, site.clone(), std::future::pending()));
    (address, fake, inboxes.remove(0), site, door)
}

/// Sends bytes and reads until the other side closes.
pub async fn talk(address: SocketAddr, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    let mut got = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut got)).await.expect("in time").unwrap();
    String::from_utf8(got).unwrap()
}

async fn get(address: SocketAddr, path: &str) -> (u16, String, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    split(&talk(address, request.as_bytes()).await)
}

/// Status, head and body.
pub fn split(answer: &str) -> (u16, String, String) {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a whole answer");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

#[tokio::test]
async fn every_page_answers_over_a_socket() {
    let (address, fake, inbox, door) = open().await;
    let pools = vec![fixture::pool(&fake.config, "app", "web")];
    fixture::answer_snapshots(inbox, WorkerSnapshot { pools, turns: 5, ..Default::default() });

    let (status, head, body) = get(address, "/metrics").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
    assert!(body.contains("pondage_worker_turns_total{worker=\"0\"} 5\n"), "{body}");
    assert!(body.contains("pondage_queries_total{database=\"app\",user=\"web\"} 0\n"), "{body}");
    assert!(body.contains("process_resident_memory_bytes "), "{body}");

    assert_eq!(get(address, "/healthz").await.0, 200);
    assert_eq!(get(address, "/readyz").await.0, 200);
    let (status, head, body) = get(address, "/").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/html") && body.contains("Pondage"), "{head}");
    assert_eq!(get(address, "/nothing").await.0, 404);
    door.abort();
}

#[tokio::test]
async fn a_process_that_shuts_down_is_alive_but_not_ready() {
    let (address, fake, inbox, door) = open().await;
    fixture::answer_snapshots(inbox, WorkerSnapshot::default());
    *fake.condition.lock().unwrap() = Condition { listening: false, stopping: true };
    assert_eq!(get(address, "/healthz").await.0, 200);
    let (status, _, body) = get(address, "/readyz").await;
    assert_eq!(status, 503);
    assert!(body.contains("shutting down"), "{body}");
    door.abort();
}

#[tokio::test]
async fn a_worker_that_hangs_makes_the_process_unhealthy() {
    // The inbox is held and never read.
    let (address, _, _inbox, door) = open().await;
    let (status, _, body) = get(address, "/healthz").await;
    assert_eq!(status, 503);
    assert!(body.contains("worker 0 did not answer within 1 s"), "{body}");
    door.abort();
}

#[tokio::test]
async fn a_connection_serves_several_requests() {
    let (address, _, inbox, door) = open().await;
    fixture::answer_snapshots(inbox, WorkerSnapshot::default());
    let one = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let last = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let got = talk(address, format!("{one}{one}{last}").as_bytes()).await;
    assert_eq!(got.matches("HTTP/1.1 200 OK").count(), 3, "{got}");
    door.abort();
}

#[tokio::test]
async fn nothing_but_get_is_taken() {
    let (address, _, _inbox, door) = open().await;
    let request =
        "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(split(&talk(address, request.as_bytes()).await).0, 405);
    door.abort();
}

#[tokio::test]
async fn a_head_too_long_is_refused() {
    let (address, _, _inbox, door) = open().await;
    let long = "x".repeat(HEAD_BYTES_MAX);
    let request = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {long}\r\n\r\n");
    assert_eq!(split(&talk(address, request.as_bytes()).await).0, 431);
    let many = "X: y\r\n".repeat(HEADERS_MAX + 1);
    let request = format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n");
    assert_eq!(split(&talk(address, request.as_bytes()).await).0, 431);
    door.abort();
}
