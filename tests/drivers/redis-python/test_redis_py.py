"""redis-py: types, pipelines, transactions, scripts, locks, messages, blocking calls, streams."""

import asyncio
import threading
import time

import pytest
import redis
import redis.asyncio
from conftest import URL

#: Bytes of a value larger than any buffer on the way.
LARGE = 5_000_000


def test_strings_with_every_option(client, name):
    key = name + "s"
    assert client.set(key, "one", nx=True) is True
    assert client.set(key, "two", nx=True) is None
    assert client.set(key, "two", xx=True, get=True) == "one"
    assert client.set(key, "three", px=100_000) is True
    assert 99_000 < client.pttl(key) <= 100_000
    assert client.set(key, "four", keepttl=True) and client.ttl(key) > 90
    assert client.getex(key, persist=True) == "four" and client.ttl(key) == -1
    assert client.append(key, "!") == 5 and client.getrange(key, -2, -1) == "r!"
    assert client.getdel(key) == "four!" and client.get(key) is None
    assert [client.incr(key), client.incrby(key, 41), client.decr(key)] == [1, 42, 41]
    assert client.incrbyfloat(key, 0.5) == 41.5
    client.mset({name + "a": 1, name + "b": 2})
    assert client.mget(name + "a", name + "none", name + "b") == ["1", None, "2"]
    assert client.msetnx({name + "a": 3, name + "c": 4}) is False


def test_any_bytes_are_carried(name):
    with redis.Redis.from_url(URL) as client:
        every = bytes(range(256))
        large = every * (LARGE // 256)
        for value in (b"", b"\0", b"\xff\xfe", b"\r\n", every, large):
            key = name.encode() + b"\0\xff\r\n"
            client.set(key, value)
            assert client.get(key) == value
        client.hset(key := name.encode() + b"h", mapping={every[:100]: every, b"": b""})
        assert client.hgetall(key) == {every[:100]: every, b"": b""}
        client.delete(key)
        client.delete(name.encode() + b"\0\xff\r\n")


def test_collections(client, name):
    client.rpush(name + "l", *range(10))
    assert client.lrange(name + "l", -3, -1) == ["7", "8", "9"]
    assert client.lpos(name + "l", "4") == 4 and client.lmove(name + "l", name + "m", "LEFT", "RIGHT") == "0"
    client.hset(name + "h", mapping={"a": 1, "b": "two"})
    assert client.hgetall(name + "h") == {"a": "1", "b": "two"}
    assert client.hincrby(name + "h", "a", 5) == 6
    client.sadd(name + "s", "a", "b", "c")
    client.sadd(name + "t", "b", "c", "d")
    assert client.sinter(name + "s", name + "t") == {"b", "c"}
    assert client.smismember(name + "s", ["a", "x"]) == [1, 0]
    client.zadd(name + "z", {"a": 1, "b": 2.5, "c": float("inf")})
    assert client.zscore(name + "z", "b") == 2.5
    ranged = client.zrange(name + "z", 0, -1, withscores=True)
    assert [(member, score) for member, score in ranged] == [("a", 1), ("b", 2.5), ("c", float("inf"))]
    assert client.zrangebyscore(name + "z", "(1", 3) == ["b"]
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        client.incr(name + "l")
    assert client.type(name + "z") == "zset"


def test_the_last_element_takes_its_key_along(client, name):
    client.rpush(name + "l", 1)
    client.lpop(name + "l")
    client.hset(name + "h", "f", 1)
    client.hdel(name + "h", "f")
    assert client.exists(name + "l", name + "h") == 0


def test_a_long_pipeline_keeps_its_order(client, name):
    pipeline = client.pipeline(transaction=False)
    for number in range(5000):
        pipeline.set(f"{name}{number % 50}", number)
        pipeline.get(f"{name}{number % 50}")
    replies = pipeline.execute()
    assert replies[1::2] == [str(number) for number in range(5000)]


def test_an_error_in_a_transaction_keeps_the_others(client, name):
    client.set(name + "s", "text")
    with client.pipeline() as pipeline:
        pipeline.set(name + "a", 1).incr(name + "s").set(name + "b", 2)
        replies = pipeline.execute(raise_on_error=False)
    assert replies[0] is True and isinstance(replies[1], redis.ResponseError) and replies[2] is True
    assert client.mget(name + "a", name + "b") == ["1", "2"]


def test_watch_sees_another_client(client, name):
    key = name + "n"
    client.set(key, 0)
    with client.pipeline() as pipeline:
        pipeline.watch(key)
        client.set(key, 1)
        pipeline.multi()
        pipeline.set(key, 2)
        with pytest.raises(redis.WatchError):
            pipeline.execute()

    def increment():
        with redis.Redis.from_url(URL) as own:
            for _ in range(20):
                own.transaction(lambda p: (value := int(p.get(key)), p.multi(), p.set(key, value + 1)), key)

    threads = [threading.Thread(target=increment) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert client.get(key) == "81"


def test_scripts_by_digest(client, name):
    add = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    client.script_flush()
    assert add(keys=[name + "n"], args=[5]) == 5
    assert add(keys=[name + "n"], args=[5]) == 10
    assert client.script_exists(add.sha) == [True]
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        client.rpush(name + "l", 1)
        add(keys=[name + "l"], args=[1])


def test_a_lock_excludes_others(client, name):
    first = client.lock(name + "lock", timeout=30)
    second = client.lock(name + "lock", timeout=30, blocking_timeout=0.2)
    assert first.acquire() and not second.acquire()
    assert first.extend(10) and first.owned()
    first.release()
    assert second.acquire()
    second.release()
    with pytest.raises(redis.exceptions.LockError):
        first.release()


def test_messages_reach_subscribers(client, name):
    with client.pubsub() as subscriber:
        subscriber.subscribe(name + "a")
        subscriber.psubscribe(name + "p*")
        for _ in range(2):
            assert subscriber.get_message(timeout=5)["type"] in ("subscribe", "psubscribe")
        assert client.publish(name + "a", "hello") == 1
        assert client.publish(name + "pattern", "there") == 1
        assert client.publish(name + "nobody", "?") == 0
        messages = [subscriber.get_message(timeout=5) for _ in range(2)]
        assert [message["data"] for message in messages] == ["hello", "there"]
        assert messages[1]["pattern"] == name + "p*"
        assert client.pubsub_numsub(name + "a") == [(name + "a", 1)]


def test_a_blocked_client_gets_what_is_pushed(client, name):
    got = []

    def wait():
        with redis.Redis.from_url(URL, decode_responses=True) as own:
            got.append(own.blpop([name + "a", name + "b"], timeout=20))
            got.append(own.bzpopmin(name + "z", timeout=20))

    waiter = threading.Thread(target=wait)
    waiter.start()
    time.sleep(0.1)
    client.rpush(name + "b", "x", "y")
    client.zadd(name + "z", {"m": 3})
    waiter.join(20)
    assert [list(answer) for answer in got] == [[name + "b", "x"], [name + "z", "m", 3.0]]
    assert client.lrange(name + "b", 0, -1) == ["y"]
    began = time.monotonic()
    assert client.blpop(name + "none", timeout=0.2) is None
    assert time.monotonic() - began < 5


def test_scan_sees_all_that_stay(client, name):
    for number in range(500):
        client.set(f"{name}{number}", number)
    found = {key for key in client.scan_iter(match=name + "*", count=37)}
    assert len(found) == 500
    client.sadd(name + "set", *range(1000))
    assert len(set(client.sscan_iter(name + "set"))) == 1000


def test_expiry_is_exact_when_read(client, name):
    client.set(name + "s", 1, px=60)
    client.hset(name + "h", "f", 1)
    client.pexpire(name + "h", 60)
    assert client.expire(name + "h", 100, gt=True) and client.pexpire(name + "h", 60, lt=True)
    time.sleep(0.08)
    assert client.get(name + "s") is None and client.hgetall(name + "h") == {}


def test_a_group_shares_a_stream(client, name):
    key = name + "x"
    ids = [client.xadd(key, {"n": number}) for number in range(6)]
    client.xgroup_create(key, "g", id="0")

    def entries(answer):
        # RESP2 has a list of streams, RESP3 a map.
        return answer[key][0] if isinstance(answer, dict) else answer[0][1]

    first = entries(client.xreadgroup("g", "one", {key: ">"}, count=4))
    second = entries(client.xreadgroup("g", "two", {key: ">"}))
    assert [entry for entry, _ in first] == ids[:4] and [entry for entry, _ in second] == ids[4:]
    assert client.xack(key, "g", *ids[:3]) == 3
    assert client.xpending(key, "g")["pending"] == 3
    claimed = client.xclaim(key, "g", "two", min_idle_time=0, message_ids=[ids[3]])
    assert claimed[0][0] == ids[3]
    assert client.xtrim(key, maxlen=2, approximate=False) == 4 and client.xlen(key) == 2


def test_asyncio_clients_at_once(name):
    async def all_of_them():
        options = {"decode_responses": True, "protocol": 3, "max_connections": 200}
        client = redis.asyncio.Redis.from_url(URL, **options)
        await asyncio.gather(*(client.incr(name + "n") for _ in range(200)))
        assert await client.get(name + "n") == "200"
        async with client.pipeline(transaction=True) as pipeline:
            replies = await pipeline.set(name + "a", 1).get(name + "a").execute()
        assert replies == [True, "1"]
        async with client.pubsub() as subscriber:
            await subscriber.subscribe(name + "c")
            await client.publish(name + "c", "m")
            async for message in subscriber.listen():
                if message["type"] == "message":
                    assert message["data"] == "m"
                    break
        await client.aclose()

    asyncio.run(asyncio.wait_for(all_of_them(), 30))


def test_what_the_server_tells_of_itself(client):
    info = client.info()
    assert tuple(int(part) for part in info["redis_version"].split(".")[:2]) >= (7, 0)
    assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
    client.client_setname("a-name")
    assert client.client_getname() == "a-name"
    seconds, microseconds = client.time()
    assert abs(seconds - time.time()) < 60 and 0 <= microseconds < 1_000_000
    assert client.ping() and client.echo("x") == "x"
