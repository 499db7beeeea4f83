//! Certificates are replaced while clients are at work.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;

use crate::kit::certificates::Authority;
use crate::kit::cluster::APP;
use crate::kit::place::Directory;
use crate::kit::{cluster, wait, Config, Database, Gateway, TlsClient};

/// Times that the files are replaced.
const ROUNDS: usize = 24;
/// Clients that stay, and such that come and go.
const STAY: usize = 4;
const COME: usize = 2;

/// The files as the gateway is told of them.
struct Files {
    directory: Directory,
    authority: Authority,
}

impl Files {
    fn new() -> Files {
        let files = Files { directory: Directory::new("renewed"), authority: Authority::new() };
        files.write("ca.crt", &files.authority.pem());
        files
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// In place of the old one at once, as certbot and its like do it.
    fn write(&self, name: &str, text: &str) {
        let new = self.path("new");
        std::fs::write(&new, text).expect("a file");
        std::fs::rename(new, self.path(name)).expect("a rename");
    }

    /// Another certificate with its key; what clients will see of it.
    fn renew(&self) -> Vec<u8> {
        let (cert, key) = self.authority.server();
        self.write("server.crt", &cert);
        self.write("server.key", &key);
        CertificateDer::from_pem_slice(cert.as_bytes()).expect("a certificate").to_vec()
    }
}

fn client(gateway: &Gateway, ca: &Path, database: &Database, direct: bool) -> TlsClient {
    let mut client = TlsClient::connect(&gateway.address(), ca, Some("postgresql"));
    if !direct {
        client.ask();
    }
    assert!(client.log_in(APP, &database.name), "no log-in");
    client
}

/// What the clients have done.
#[derive(Default)]
struct Work {
    ends: AtomicBool,
    answers: [AtomicUsize; STAY],
    log_ins: AtomicUsize,
    seen: Mutex<Vec<Vec<u8>>>,
}

impl Work {
    fn goes_on(&self) -> bool {
        !self.ends.load(Ordering::Acquire)
    }

    fn stay(&self, at: usize, mut client: TlsClient) {
        while self.goes_on() {
            let answer = client.query("select 'al' || 'ive'").expect("the connection is kept");
            assert!(answer.contains("alive"), "{answer}");
            self.answers[at].fetch_add(1, Ordering::AcqRel);
        }
    }

    fn come(&self, mut client: TlsClient) {
        assert!(client.query("select 'al' || 'ive'").expect("an answer").contains("alive"));
        let seen = client.certificate().expect("a certificate");
        let mut all = self.seen.lock().expect("nobody failed");
        if !all.contains(&seen) {
            all.push(seen);
        }
        self.log_ins.fetch_add(1, Ordering::AcqRel);
    }

    /// Everyone has been answered since this was called.
    fn all_are_alive(&self) {
        for answers in self.answers.iter().chain([&self.log_ins]) {
            let before = answers.load(Ordering::Acquire);
            wait::until("an answer", || answers.load(Ordering::Acquire) > before + 1);
        }
    }
}

/// Ends the work also where the test fails, or it would wait for the clients for ever.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn certificates_are_replaced_under_load_and_no_connection_is_lost() {
    let database = cluster().database();
    let files = Files::new();
    let mut current = files.renew();
    let config = Config::of(&database)
        .set("auth.method", "trust")
        .set("listen.tls.mode", "prefer")
        .set("listen.tls.cert", files.path("server.crt").display().to_string())
        .set("listen.tls.key", files.path("server.key").display().to_string());
    let gateway = Gateway::start(config);
    let ca = files.path("ca.crt");
    let shown = || {
        let client = client(&gateway, &ca, &database, true);
        client.certificate().expect("a certificate")
    };
    let work = Work::default();
    let (work, gateway, files, ca, database) = (&work, &gateway, &files, &ca, &database);
    std::thread::scope(|scope| {
        let _ends = Ends(&work.ends);
        for at in 0..STAY {
            let client = client(gateway, ca, database, at % 2 == 0);
            scope.spawn(move || work.stay(at, client));
        }
        for at in 0..COME {
            scope.spawn(move || {
                while work.goes_on() {
                    work.come(client(gateway, ca, database, at % 2 == 0));
                }
            });
        }
        for round in 0..ROUNDS {
            match round % 4 {
                // Half of a pair, or nothing that is a certificate: the old one stays.
                2 => {
                    let (cert, key) = files.authority.server();
                    let (name, text) = match round % 8 {
                        2 => ("server.crt", cert.as_str()),
                        _ => ("server.key", key.as_str()),
                    };
                    files.write(name, text);
                }
                3 => files.write("server.crt", "broken"),
                _ => {
                    current = files.renew();
                    match round % 8 {
                        0 | 1 => gateway.signal(Signal::HUP),
                        _ => gateway.console().run("reload"),
                    }
                    wait::until("the new certificate", || shown() == current);
                    work.all_are_alive();
                    continue;
                }
            }
            let refused = || gateway.said().text().matches("error[P0").count();
            let before = refused();
            gateway.signal(Signal::HUP);
            wait::until("the log to say so", || refused() > before);
            let complaint = format!("{:?}", gateway.console().error("reload"));
            assert!(complaint.contains("server.crt"), "{complaint}");
            assert!(shown() == current, "the old one goes on");
            work.all_are_alive();
        }
    });
    let seen = work.seen.lock().expect("nobody failed");
    assert!(seen.contains(&current));
    assert!(seen.len() > 1 && seen.len() <= ROUNDS / 2 + 1, "{}", seen.len());
}
