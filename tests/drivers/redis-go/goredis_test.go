// Package redisdrivers holds go-redis: types, pipelines, transactions, scripts, messages, blocking
// calls and streams, in RESP2 and RESP3.
package redisdrivers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// large is the size of a value larger than any buffer on the way, in bytes.
const large = 5_000_000

// both runs body in RESP2 and RESP3, each with a client and a prefix of its own; keys with the
// prefix are deleted afterwards.
func both(t *testing.T, body func(t *testing.T, ctx context.Context, client *redis.Client, p string)) {
	t.Helper()
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			client := connect(t, protocol)
			prefix := fmt.Sprintf("t%016x:", rand.Uint64())
			defer remove(ctx, t, client, prefix)
			body(t, ctx, client, prefix)
		})
	}
}

func connect(t *testing.T, protocol int) *redis.Client {
	t.Helper()
	url := os.Getenv("REDIS_URL")
	if url == "" {
		url = "redis://127.0.0.1:6379/0"
	}
	options, err := redis.ParseURL(url)
	check(t, err)
	options.Protocol = protocol
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func remove(ctx context.Context, t *testing.T, client *redis.Client, prefix string) {
	t.Helper()
	keys := client.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		check(t, client.Unlink(ctx, keys.Val()).Err())
	}
	check(t, keys.Err())
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestValuesOfEveryKind(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, client *redis.Client, p string) {
		equal(t, client.SetNX(ctx, p+"s", "one", time.Minute).Val(), true)
		equal(t, client.SetNX(ctx, p+"s", "two", time.Minute).Val(), false)
		left := client.TTL(ctx, p+"s").Val()
		if left <= 50*time.Second || left > time.Minute {
			t.Fatalf("%v are left", left)
		}
		equal(t, client.Get(ctx, p+"none").Err(), redis.Nil)
		value := bytes.Repeat([]byte{0, 255, 13, 10}, large/4)
		check(t, client.Set(ctx, p+"b", value, 0).Err())
		got, err := client.Get(ctx, p+"b").Bytes()
		check(t, err)
		if !bytes.Equal(got, value) {
			t.Fatal("a large value has changed")
		}
		check(t, client.HSet(ctx, p+"h", "a", 1, "b", "two").Err())
		equal(t, client.HGetAll(ctx, p+"h").Val(), map[string]string{"a": "1", "b": "two"})
		members := []redis.Z{{Score: 1, Member: "a"}, {Score: 2.5, Member: "b"}, {Score: math.Inf(1), Member: "c"}}
		check(t, client.ZAdd(ctx, p+"z", members...).Err())
		equal(t, client.ZRangeWithScores(ctx, p+"z", 0, -1).Val(), members)
		equal(t, client.ZRevRank(ctx, p+"z", "c").Val(), int64(0))
		check(t, client.SAdd(ctx, p+"e", "x", "y").Err())
		found := client.SMembers(ctx, p+"e").Val()
		slices.Sort(found)
		equal(t, found, []string{"x", "y"})
		err = client.Incr(ctx, p+"h").Err()
		if err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE") {
			t.Fatalf("INCR of a hash: %v", err)
		}
	})
}

func TestALongPipelineKeepsItsOrder(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, client *redis.Client, p string) {
		replies, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for n := range 5000 {
				pipe.IncrBy(ctx, p+"n", int64(n%3))
			}
			return nil
		})
		check(t, err)
		sum := int64(0)
		for n, reply := range replies {
			sum += int64(n % 3)
			equal(t, reply.(*redis.IntCmd).Val(), sum)
		}
	})
}

func TestWatchSeesOthers(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, client *redis.Client, p string) {
		check(t, client.Set(ctx, p+"n", 0, 0).Err())
		var all sync.WaitGroup
		for range 8 {
			all.Add(1)
			go func() {
				defer all.Done()
				for done := 0; done < 10; {
					err := client.Watch(ctx, func(tx *redis.Tx) error {
						n, err := tx.Get(ctx, p+"n").Int()
						if err != nil {
							return err
						}
						_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
							pipe.Set(ctx, p+"n", n+1, 0)
							return nil
						})
						return err
					}, p+"n")
					if err == nil {
						done++
					} else if !errors.Is(err, redis.TxFailedErr) {
						t.Error(err)
						return
					}
				}
			}()
		}
		all.Wait()
		equal(t, client.Get(ctx, p+"n").Val(), "80")
	})
}

func TestScripts(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, client *redis.Client, p string) {
		add := redis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")
		for _, want := range []int64{5, 10} {
			got, err := add.Run(ctx, client, []string{p + "n"}, 5).Int64()
			check(t, err)
			equal(t, got, want)
		}
		reply, err := client.Eval(ctx, "return {1, 'two', {3}, false}", nil).Slice()
		check(t, err)
		equal(t, reply, []any{int64(1), "two", []any{int64(3)}, nil})
	})
}

func TestMessages(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, client *redis.Client, p string) {
		subscriber := client.PSubscribe(ctx, p+"*")
		defer func() { _ = subscriber.Close() }()
		_, err := subscriber.Receive(ctx)
		check(t, err)
		for n := range 100 {
			equal(t, client.Publish(ctx, p+"c", n).Val(), int64(1))
		}
		for n := range 100 {
			message, err := subscriber.ReceiveMessage(ctx)
			check(t, err)
			equal(t, message.Payload, fmt.Sprint(n))
		}
	})
}

func TestABlockedClientGetsWhatIsPushed(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, client *redis.Client, p string) {
		popped := make(chan []string, 1)
		go func() { popped <- client.BLPop(ctx, 20*time.Second, p+"a", p+"b").Val() }()
		time.Sleep(50 * time.Millisecond)
		check(t, client.RPush(ctx, p+"b", "x", "y").Err())
		equal(t, <-popped, []string{p + "b", "x"})
		equal(t, client.BLPop(ctx, 100*time.Millisecond, p+"none").Err(), redis.Nil)
	})
}

func TestAGroupSharesAStream(t *testing.T) {
	both(t, func(t *testing.T, ctx context.Context, client *redis.Client, p string) {
		check(t, client.XGroupCreateMkStream(ctx, p+"x", "g", "$").Err())
		for n := range 5 {
			arguments := &redis.XAddArgs{Stream: p + "x", Values: map[string]any{"n": n}}
			check(t, client.XAdd(ctx, arguments).Err())
		}
		arguments := &redis.XReadGroupArgs{Group: "g", Consumer: "one", Streams: []string{p + "x", ">"}, Count: 3}
		read, err := client.XReadGroup(ctx, arguments).Result()
		check(t, err)
		equal(t, len(read[0].Messages), 3)
		equal(t, client.XAck(ctx, p+"x", "g", read[0].Messages[0].ID).Val(), int64(1))
		equal(t, client.XPending(ctx, p+"x", "g").Val().Count, int64(2))
		info, err := client.XInfoGroups(ctx, p+"x").Result()
		check(t, err)
		equal(t, info[0].Lag, int64(2))
	})
}
