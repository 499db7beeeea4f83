//! `pondage demo`, as somebody tries it who has just heard of it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::kit::gateway::binary;
use crate::kit::place::free_port;
use crate::kit::terminal::Terminal;
use crate::kit::{wait, RedisClient};

/// Ended with the test, whatever becomes of it.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        let _ = self.0.wait();
    }
}

/// The words of the line that begins so.
fn line<'a>(said: &'a str, program: &str) -> Vec<&'a str> {
    let found = said.lines().map(str::trim).find(|line| line.starts_with(program));
    found.unwrap_or_else(|| panic!("no line of {program}:\n{said}")).split(' ').collect()
}

#[test]
fn the_demo_opens_the_redis_door_on_the_tables_that_sql_has_filled() {
    let mut command = Command::new(binary());
    let listen = format!("127.0.0.1:{}", free_port());
    command.args(["demo", "--listen", &listen, "--http", "off"]);
    let child = command.stderr(Stdio::piped()).spawn().expect("the demo starts");
    let mut demo = Demo(child);
    let stderr = demo.0.stderr.take().expect("a pipe");
    let mut reader = BufReader::new(stderr);
    let mut said = String::new();
    while !said.contains("redis-cli") {
        let read = reader.read_line(&mut said).expect("lines");
        assert!(read > 0, "the demo has ended:\n{said}");
    }
    std::thread::spawn(move || reader.read_to_end(&mut Vec::new()));

    let words = line(&said, "redis-cli");
    let address = words[2].strip_prefix("redis://demo:demo@").expect("an address");
    let socket = std::net::TcpStream::connect(address).expect("the door is open");
    socket.set_read_timeout(Some(wait::DEADLINE)).expect("a timeout");
    let mut client = RedisClient::over(socket);
    client.says(b"PING\r\n", b"-NOAUTH Authentication required.\r\n");
    client.says(b"AUTH demo demo\r\n", b"+OK\r\n");
    assert_eq!(words[4..], ["HGETALL", "customer:1"]);
    client.says(b"HGET customer:1 name\r\n", b"$10\r\nCustomer 1\r\n");
    client.says(b"INCR visits\r\nSCARD cities\r\nLLEN parcels\r\n", b":1\r\n:6\r\n:10\r\n");
    client.says(b"ZCARD best\r\n", b":100\r\n");
}

/// A demo with a load, and doors that nobody else has.
fn loaded(seconds: &str) -> Command {
    let mut command = Command::new(binary());
    command.args(["demo", "--load", seconds, "--http", "off"]);
    for door in ["--listen", "--redis"] {
        command.args([door, &format!("127.0.0.1:{}", free_port())]);
    }
    command
}

#[test]
fn a_load_that_nobody_looks_at_is_one_table_of_what_was_measured_and_lines_that_work() {
    let child = loaded("3").stderr(Stdio::piped()).spawn().expect("the demo starts");
    let mut demo = Demo(child);
    let mut reader = BufReader::new(demo.0.stderr.take().expect("a pipe"));
    let mut said = String::new();
    while !said.contains("ZREVRANGE") {
        let read = reader.read_line(&mut said).expect("lines");
        assert!(read > 0, "the demo has ended:\n{said}");
    }
    std::thread::spawn(move || reader.read_to_end(&mut Vec::new()));

    assert!(!said.contains('\x1b'), "{said}");
    assert_eq!(said.matches("Pondage/s").count(), 1, "{said}");
    let rows = ["connect, ", "400 clients, ", "the same read", "small writes", "payment: "];
    for row in rows {
        let line = said.lines().find(|line| line.starts_with(row));
        let line = line.unwrap_or_else(|| panic!("no row {row:?}:\n{said}"));
        let mut figures = line[31..].split_whitespace();
        let mut figure = || figures.next().expect("a figure").trim_end_matches('x').parse::<f64>();
        let (direct, through, ratio) = (figure(), figure(), figure());
        let (direct, through) = (direct.expect("direct"), through.expect("through"));
        // A machine that is busy may not get anything done in a turn this short.
        match ratio {
            Ok(ratio) => {
                let quotient = through / direct;
                assert!((ratio - quotient).abs() <= 0.01 + quotient * 0.02, "{line}");
            }
            Err(_) => assert!(direct == 0.0, "{line}"),
        }
    }

    let next = said.split("Try next:").nth(1).expect("commands");
    for program in ["psql", "redis-cli"] {
        let command = next.lines().map(str::trim).find(|line| line.starts_with(program));
        let command = command.unwrap_or_else(|| panic!("no {program}:\n{next}"));
        if program == "redis-cli" && Command::new(program).arg("-v").output().is_err() {
            continue;
        }
        let ran = Command::new("sh").args(["-c", command]).output().expect("sh");
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[test]
fn a_load_in_a_terminal_is_redrawn_and_ends_with_ctrl_c_without_a_trace() {
    let demo = Terminal::run(loaded("120"));
    demo.sees("connect, select, leave");
    // The second row has been drawn over the first drawing: not all clients can be let in.
    demo.sees("direct, ");
    let text = demo.text();
    assert_eq!(text.matches("Pondage/s").count(), 1, "{text}");
    let directory = text.split("runs in ").nth(1).and_then(|rest| rest.split(';').next());
    let directory = std::path::PathBuf::from(directory.expect("a directory"));
    assert!(directory.exists());
    let pid = std::fs::read_to_string(directory.join("data/postmaster.pid")).expect("a server");
    let pid = pid.lines().next().expect("its pid").to_owned();
    demo.interrupt();
    let (status, _) = demo.ended();
    assert!(status.success(), "{status}");
    assert!(!directory.exists());
    assert!(!std::path::Path::new("/proc").join(pid).exists());
}
