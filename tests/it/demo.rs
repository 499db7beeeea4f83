//! `pondage demo`, as somebody tries it who has just heard of it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use crate::kit::gateway::binary;
use crate::kit::place::free_port;
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
