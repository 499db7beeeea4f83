package pondage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XReadGroupParams;
import redis.clients.jedis.util.JedisURIHelper;

/** Jedis: types, pipelines, transactions, scripts, messages, blocking calls and streams. */
@Timeout(60)
class JedisTest {
    private static final URI SERVER =
            URI.create(System.getenv().getOrDefault("REDIS_URL", "redis://127.0.0.1:6379/0"));

    /** What every key of a test begins with. */
    private String p;

    private static DefaultJedisClientConfig config(RedisProtocol protocol) {
        return DefaultJedisClientConfig.builder()
                .protocol(protocol)
                .user(JedisURIHelper.getUser(SERVER))
                .password(JedisURIHelper.getPassword(SERVER))
                .database(JedisURIHelper.getDBIndex(SERVER))
                .socketTimeoutMillis(20_000)
                .blockingSocketTimeoutMillis(40_000)
                .build();
    }

    private static Jedis connect(RedisProtocol protocol) {
        return new Jedis(new HostAndPort(SERVER.getHost(), SERVER.getPort()), config(protocol));
    }

    @BeforeEach
    void choosePrefix() {
        p = "t" + UUID.randomUUID().toString().replace("-", "") + ":";
    }

    @AfterEach
    void deleteKeys() {
        try (Jedis jedis = connect(RedisProtocol.RESP2)) {
            for (String key : scan(jedis)) {
                jedis.unlink(key);
            }
        }
    }

    private Set<String> scan(Jedis jedis) {
        Set<String> found = new HashSet<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
            var page = jedis.scan(cursor, new ScanParams().match(p + "*").count(100));
            found.addAll(page.getResult());
            cursor = page.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        return found;
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void valuesOfEveryKind(RedisProtocol protocol) {
        try (Jedis jedis = connect(protocol)) {
            assertEquals("OK", jedis.set(p + "s", "one", SetParams.setParams().ex(100).nx()));
            assertNull(jedis.set(p + "s", "two", SetParams.setParams().nx()));
            assertTrue(jedis.ttl(p + "s") > 90);
            byte[] value = new byte[5_000_000];
            for (int i = 0; i < value.length; i++) {
                value[i] = (byte) i;
            }
            jedis.set((p + "b").getBytes(), value);
            assertArrayEquals(value, jedis.get((p + "b").getBytes()));
            jedis.hset(p + "h", Map.of("a", "1", "b", "two"));
            assertEquals(Map.of("a", "1", "b", "two"), jedis.hgetAll(p + "h"));
            jedis.zadd(p + "z", Map.of("a", 1.0, "b", 2.5, "c", Double.POSITIVE_INFINITY));
            assertEquals(List.of("a", "b", "c"), jedis.zrange(p + "z", 0, -1));
            assertEquals(2.5, jedis.zscore(p + "z", "b"));
            assertEquals(2.5, jedis.zrangeWithScores(p + "z", 1, 1).get(0).getScore());
            jedis.sadd(p + "e", "x", "y");
            assertEquals(Set.of("x", "y"), jedis.smembers(p + "e"));
            jedis.rpush(p + "l", "1", "2", "3");
            assertEquals(List.of("2", "3"), jedis.lrange(p + "l", 1, -1));
            var error = assertThrows(JedisDataException.class, () -> jedis.incr(p + "l"));
            assertTrue(error.getMessage().startsWith("WRONGTYPE"), error.getMessage());
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void aLongPipelineKeepsItsOrder(RedisProtocol protocol) {
        try (Jedis jedis = connect(protocol)) {
            Pipeline pipeline = jedis.pipelined();
            List<Response<Long>> replies = new ArrayList<>();
            for (int i = 0; i < 5000; i++) {
                replies.add(pipeline.incr(p + "n"));
            }
            pipeline.sync();
            for (int i = 0; i < 5000; i++) {
                assertEquals(i + 1, replies.get(i).get());
            }
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void aTransactionSeesWhatOthersChange(RedisProtocol protocol) {
        try (Jedis jedis = connect(protocol); Jedis other = connect(protocol)) {
            Transaction first = jedis.multi();
            Response<String> set = first.set(p + "a", "1");
            first.lpush(p + "a", "x");
            Response<Long> incremented = first.incr(p + "a");
            assertEquals(3, first.exec().size());
            assertEquals("OK", set.get());
            assertEquals(2, incremented.get());
            jedis.watch(p + "a");
            other.incr(p + "a");
            Transaction second = jedis.multi();
            second.set(p + "a", "0");
            assertNull(second.exec());
            assertEquals("3", jedis.get(p + "a"));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void scripts(RedisProtocol protocol) {
        try (Jedis jedis = connect(protocol)) {
            String digest = jedis.scriptLoad("return redis.call('INCRBY', KEYS[1], ARGV[1])");
            assertEquals(5L, jedis.evalsha(digest, 1, p + "n", "5"));
            assertEquals(List.of(1L, "two", List.of(3L)), jedis.eval("return {1, 'two', {3}}"));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void messages(RedisProtocol protocol) throws Exception {
        CountDownLatch subscribed = new CountDownLatch(2);
        CountDownLatch heard = new CountDownLatch(101);
        ConcurrentLinkedQueue<String> texts = new ConcurrentLinkedQueue<>();
        JedisPubSub listener =
                new JedisPubSub() {
                    @Override
                    public void onSubscribe(String channel, int count) {
                        subscribed.countDown();
                    }

                    @Override
                    public void onMessage(String channel, String text) {
                        texts.add(text);
                        heard.countDown();
                    }
                };
        try (Jedis subscriber = connect(protocol); Jedis jedis = connect(protocol)) {
            Thread thread = new Thread(() -> subscriber.subscribe(listener, p + "c", p + "d"));
            thread.start();
            assertTrue(subscribed.await(20, TimeUnit.SECONDS));
            for (int i = 0; i < 100; i++) {
                assertEquals(1, jedis.publish(p + "c", String.valueOf(i)));
            }
            jedis.publish(p + "d", "last");
            assertTrue(heard.await(20, TimeUnit.SECONDS));
            listener.unsubscribe();
            thread.join(20_000);
        }
        List<String> expected = new ArrayList<>();
        IntStream.range(0, 100).forEach(i -> expected.add(String.valueOf(i)));
        expected.add("last");
        assertEquals(expected, List.copyOf(texts));
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void aBlockedClientGetsWhatIsPushed(RedisProtocol protocol) throws Exception {
        try (Jedis waiting = connect(protocol); Jedis jedis = connect(protocol)) {
            var popped = CompletableFuture.supplyAsync(() -> waiting.blpop(20, p + "a", p + "b"));
            TimeUnit.MILLISECONDS.sleep(50);
            jedis.rpush(p + "b", "x", "y");
            assertEquals(List.of(p + "b", "x"), popped.get(20, TimeUnit.SECONDS));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void aPoolOfManyThreads(RedisProtocol protocol) {
        HostAndPort place = new HostAndPort(SERVER.getHost(), SERVER.getPort());
        try (JedisPooled pool = new JedisPooled(place, config(protocol))) {
            IntStream.range(0, 2000).parallel().forEach(i -> pool.incr(p + "n"));
            assertEquals("2000", pool.get(p + "n"));
        }
    }

    @ParameterizedTest
    @EnumSource(RedisProtocol.class)
    void aStreamWithAGroup(RedisProtocol protocol) {
        try (Jedis jedis = connect(protocol)) {
            String key = p + "x";
            jedis.xgroupCreate(key, "g", new StreamEntryID(), true);
            var id = jedis.xadd(key, StreamEntryID.NEW_ENTRY, Map.of("n", "1"));
            var read = jedis.xreadGroup("g", "one", XReadGroupParams.xReadGroupParams().count(5),
                    Map.of(key, StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
            assertEquals(id, read.get(0).getValue().get(0).getID());
            assertEquals(1, jedis.xpending(key, "g").getTotal());
            assertEquals(1, jedis.xack(key, "g", id));
            assertEquals(1, jedis.xlen(key));
        }
    }
}
