"""The commands that programs in other languages send, in their order and form.

Sources: Sidekiq 7.2 (lib/sidekiq/client.rb, fetch.rb, launcher.rb, scheduled.rb, api.rb), Rails 7.1
(activesupport/lib/active_support/cache/redis_cache_store.rb), Flask-Session, and the fixed window
that most rate limiters are.
"""

import json
import threading
import time
import uuid

import flask
import flask_session
import pytest
import redis

ZPOPBYSCORE = """
local key, now = KEYS[1], ARGV[1]
local jobs = redis.call("zrange", key, "-inf", now, "byscore", "limit", 0, 1)
if jobs[1] then
  redis.call("zrem", key, jobs[1])
  return jobs[1]
end
"""


def job(**more):
    return json.dumps({"class": "Work", "args": [1, "ä"], "jid": uuid.uuid4().hex, **more})


def test_sidekiq_pushes_fetches_and_counts(client, name):
    raw = client.execute_command
    payload = job(queue="default")
    with client.pipeline(transaction=False) as pipe:
        pipe.execute_command("SADD", name + "queues", "default")
        pipe.execute_command("LPUSH", name + "queue:default", payload)
        assert pipe.execute() == [1, 1]
    fetched = raw("BRPOP", name + "queue:critical", name + "queue:default", 2)
    assert list(fetched) == [name + "queue:default", payload]
    assert raw("BRPOP", name + "queue:critical", name + "queue:default", 0.1) is None
    today = time.strftime("%Y-%m-%d")
    with client.pipeline(transaction=True) as pipe:
        for stat in ("processed", "failed"):
            pipe.execute_command("INCRBY", name + f"stat:{stat}", 3)
            pipe.execute_command("INCRBY", name + f"stat:{stat}:{today}", 3)
            pipe.execute_command("EXPIRE", name + f"stat:{stat}:{today}", 157784760)
        assert [int(reply) for reply in pipe.execute()] == [3, 3, 1, 3, 3, 1]


def test_sidekiq_beats(client, name):
    process = name + "host:1:abc"
    for _ in range(2):
        with client.pipeline(transaction=True) as pipe:
            pipe.execute_command("UNLINK", process + ":work")
            pipe.execute_command("HSET", process + ":work", "tid", job())
            pipe.execute_command("EXPIRE", process + ":work", 60)
            pipe.execute()
        with client.pipeline(transaction=True) as pipe:
            pipe.execute_command("SADD", name + "processes", process)
            pipe.execute_command("EXISTS", process)
            pipe.execute_command(
                "HSET", process, "info", "{}", "busy", 1, "beat", time.time(), "rtt_us", 100,
                "quiet", "false", "rss", 100000,
            )
            pipe.execute_command("EXPIRE", process, 60)
            pipe.execute_command("RPOP", process + "-signals")
            replies = pipe.execute()
        assert replies[-1] is None and replies[3]
    assert client.set(name + "process_cleanup", "1", nx=True, ex=60)
    assert not client.set(name + "process_cleanup", "1", nx=True, ex=60)
    assert client.execute_command("SSCAN", name + "processes", 0)[1] == [process]
    with client.pipeline(transaction=False) as pipe:
        pipe.execute_command("HMGET", process, "info", "concurrency", "busy", "beat", "quiet")
        assert pipe.execute()[0][1] is None


def test_sidekiq_schedules_and_buries(client, name):
    due, later = job(n=1), job(n=2)
    client.zadd(name + "schedule", {due: time.time() - 1, later: time.time() + 1000})
    digest = client.script_load(ZPOPBYSCORE)
    pop = lambda: client.evalsha(digest, 1, name + "schedule", time.time())  # noqa: E731
    assert pop() == due
    assert pop() is None
    with client.pipeline(transaction=True) as pipe:
        pipe.execute_command("ZADD", name + "dead", time.time(), due)
        pipe.execute_command("ZREMRANGEBYSCORE", name + "dead", "-inf", time.time() - 1000)
        pipe.execute_command("ZREMRANGEBYRANK", name + "dead", 0, -10000)
        assert pipe.execute() == [1, 0, 0]
    with client.pipeline(transaction=False) as pipe:
        for words in (
            ("GET", "stat:none"), ("ZCARD", "schedule"), ("ZCARD", "retry"), ("ZCARD", "dead"),
            ("SCARD", "processes"), ("LRANGE", "queue:default", -1, -1), ("SMEMBERS", "queues"),
        ):
            pipe.execute_command(words[0], name + words[1], *words[2:])
        replies = pipe.execute()
    assert [list(r) if isinstance(r, (set, list)) else r for r in replies] == [None, 1, 0, 1, 0, [], []]


def test_many_workers_get_each_job_once(url, client, name):
    got, count = [], 200

    def work():
        with redis.Redis.from_url(url) as own:
            while answer := own.brpop([name + "queue"], timeout=1):
                got.append(answer[1])

    workers = [threading.Thread(target=work) for _ in range(8)]
    [worker.start() for worker in workers]
    for number in range(count):
        client.lpush(name + "queue", number)
    [worker.join(30) for worker in workers]
    assert sorted(int(value) for value in got) == list(range(count))


def test_rails_caches(client, name):
    raw = client.execute_command
    assert raw("SET", name + "views/1", "\x04\x08", "PX", 60000)
    assert raw("SET", name + "views/1", "other", "PX", 60000, "NX") is None
    assert raw("MGET", name + "views/1", name + "views/2") == ["\x04\x08", None]
    for expected in (1, 2):
        with client.pipeline(transaction=False) as pipe:
            pipe.execute_command("INCRBY", name + "count", 1)
            pipe.execute_command("EXPIRE", name + "count", 60, "NX")
            count, set_now = pipe.execute()
        assert (count, bool(set_now)) == (expected, expected == 1)
    assert raw("DECRBY", name + "count", 1) == 1 and 0 < raw("TTL", name + "count") <= 60
    cursor, found = "0", []
    while True:
        cursor, keys = raw("SCAN", cursor, "MATCH", name + "*", "COUNT", 1000)
        found += keys
        if int(cursor) == 0:
            break
    assert sorted(found) == [name + "count", name + "views/1"]
    assert raw("UNLINK", *found) == 2


@pytest.mark.parametrize("protocol", [2, 3])
def test_flask_keeps_sessions(url, name, protocol):
    with redis.Redis.from_url(url, protocol=protocol) as store:
        app = flask.Flask("sessions")
        app.config.update(SESSION_TYPE="redis", SESSION_REDIS=store, SESSION_KEY_PREFIX=name)
        flask_session.Session(app)

        @app.route("/visit")
        def visit():
            flask.session["visits"] = flask.session.get("visits", 0) + 1
            return str(flask.session["visits"])

        @app.route("/leave")
        def leave():
            flask.session.clear()
            return "gone"

        one, other = app.test_client(), app.test_client()
        assert [one.get("/visit").text for _ in range(3)] == ["1", "2", "3"]
        assert other.get("/visit").text == "1"
        (key, *_) = store.scan_iter(match=name + "*")
        assert store.ttl(key) > 0
        one.get("/leave")
        assert one.get("/visit").text == "1"


def test_a_rate_limit_by_script(client, name):
    window = client.register_script(
        "local n = redis.call('INCR', KEYS[1]) "
        "if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end "
        "return {n, redis.call('PTTL', KEYS[1])}"
    )
    for expected in (1, 2, 3):
        count, left = window(keys=[name + "limit"], args=[60000])
        assert count == expected and 0 < left <= 60000
