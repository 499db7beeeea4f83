//! Keys are carried between `redis-server` and the door, as tools do that copy key by key.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::open;
use crate::kit::{cluster, Gateway, RedisClient, RedisServer};

/// Asks and gives replies as they came.
struct Asker(BufReader<TcpStream>);

impl Asker {
    fn ask(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.0.get_mut().write_all(&request).expect("written");
        let mut reply = Vec::new();
        self.read(&mut reply);
        reply
    }

    fn read(&mut self, reply: &mut Vec<u8>) {
        let begin = reply.len();
        self.0.read_until(b'\n', reply).expect("a line");
        let line = String::from_utf8_lossy(&reply[begin..]).trim_end().to_owned();
        let count = line[1..].parse::<usize>().unwrap_or(0);
        match line.as_bytes()[0] {
            b'*' => (0..count).for_each(|_| self.read(reply)),
            b'$' if !line.starts_with("$-") => {
                let mut bytes = vec![0; count + 2];
                self.0.read_exact(&mut bytes).expect("a bulk string");
                reply.extend_from_slice(&bytes);
            }
            _ => {}
        }
    }

    fn line(&mut self, line: &str) -> Vec<u8> {
        self.ask(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// What DUMP gives.
    fn dump(&mut self, key: &str) -> Vec<u8> {
        let reply = self.ask(&[b"DUMP", key.as_bytes()]);
        let head = reply.iter().position(|byte| *byte == b'\n').expect("a length") + 1;
        reply[head..reply.len() - 2].to_vec()
    }

    fn restore(&mut self, key: &str, payload: &[u8]) -> Vec<u8> {
        self.ask(&[b"RESTORE", key.as_bytes(), b"0", payload, b"REPLACE"])
    }

    /// What can be seen of a stream, but for times.
    fn stream(&mut self, key: &str) -> Vec<Vec<u8>> {
        let mut told = vec![
            self.line(&format!("XRANGE {key} - +")),
            self.line(&format!("XREVRANGE {key} + - COUNT 3")),
            self.line(&format!("XINFO GROUPS {key}")),
        ];
        for group in ["readers", "new"] {
            told.push(self.line(&format!("XPENDING {key} {group}")));
        }
        told
    }
}

/// Entries of all lengths, with fields as before and others, over several of Redis's nodes.
fn fill(server: &mut Asker) {
    let numbers = ["0", "127", "128", "-1", "4095", "-4096", "4096", "32767", "-32769", "8388608"];
    let numbers = [&numbers[..], &["2147483648", "-9223372036854775808", "1e5", "-0"]].concat();
    for n in 0..350usize {
        let id = format!("{}-{}", 1_700_000_000_000 + n as u64 / 3, n);
        let long = "x".repeat([0, 1, 63, 64, 200][n % 5]);
        let number = numbers[n % numbers.len()];
        let mut words = vec!["XADD", "s", &id, "number", number, "text", &long];
        if n % 40 == 7 {
            words.extend(["third", "field"]);
        }
        let large = "y".repeat(5_000);
        if n == 111 {
            words[6] = &large;
        }
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        assert_eq!(server.ask(&words)[0], b'$');
    }
    server.line("XGROUP CREATE s readers 0");
    server.line("XGROUP CREATE s new $");
    server.line("XREADGROUP GROUP readers ann COUNT 7 STREAMS s >");
    server.line("XREADGROUP GROUP readers bob COUNT 2 STREAMS s >");
    server.line("XACK s readers 1700000000000-1");
    server.line("XGROUP CREATECONSUMER s new idle");
}

#[test]
fn streams_are_carried_from_redis_server_and_back() {
    let (server, gateway) = (RedisServer::start(), Gateway::start(open(&cluster().database())));
    let asker = |socket: TcpStream| Asker(BufReader::new(socket));
    let mut redis = asker(TcpStream::connect(server.address()).expect("redis-server"));
    let mut door = asker(RedisClient::socket(&gateway));
    fill(&mut redis);
    let payload = redis.dump("s");
    assert_eq!(door.restore("s", &payload), b"+OK\r\n");
    assert_eq!(door.stream("s"), redis.stream("s"));
    // Before Redis 7.2 there was no room for when a consumer was active.
    let back = redis.restore("back", &door.dump("s"));
    if payload[0] < 21 {
        assert_eq!(back, b"-ERR DUMP payload version or checksum are wrong\r\n");
    } else {
        assert_eq!(back, b"+OK\r\n");
        assert_eq!(redis.dump("back"), payload, "the same nodes, the same bytes");
    }
    // With gaps, and without an entry.
    for line in
        ["XDEL s 1700000000001-4 1700000000050-150", "XTRIM s MAXLEN 100", "XTRIM s MAXLEN 0"]
    {
        redis.line(line);
        assert_eq!(door.restore("s", &redis.dump("s")), b"+OK\r\n", "{line}");
        assert_eq!(door.stream("s"), redis.stream("s"), "{line}");
        let own = door.dump("s");
        assert_eq!(door.restore("own", &own), b"+OK\r\n", "{line}");
        assert_eq!(door.stream("own"), redis.stream("s"), "{line}");
        if own[0] <= payload[0] {
            assert_eq!(redis.restore("back", &own), b"+OK\r\n", "{line}");
            assert_eq!(redis.stream("back"), redis.stream("s"), "{line}");
        }
    }
}
