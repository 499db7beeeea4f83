// Package drivers holds pgx in a pool of transactions: everything an application does, on shared
// servers.
package drivers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// Far beyond the pool's size, so that every statement may meet another server.
	connections = 50
	// Bytes of a value larger than any buffer on the way.
	large = 5_000_000
)

// limit bounds a whole test.
func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// connect reads PGHOST and the like; change may alter the configuration.
func connect(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig("")
	if err != nil {
		return nil, err
	}
	if change != nil {
		change(config)
	}
	return pgx.ConnectConfig(ctx, config)
}

func open(t *testing.T, change func(*pgx.ConnConfig)) (context.Context, *pgx.Conn) {
	t.Helper()
	ctx := limit(t)
	conn, err := connect(ctx, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return ctx, conn
}

// table creates a table that the end of the test drops.
func table(t *testing.T, ctx context.Context, conn *pgx.Conn, columns string) string {
	t.Helper()
	name := fmt.Sprintf("t_%d", time.Now().UnixNano())
	must(t, exec(ctx, conn, "create table "+name+columns))
	t.Cleanup(func() {
		if err := exec(context.Background(), conn, "drop table "+name); err != nil {
			t.Error(err)
		}
	})
	return name
}

func exec(ctx context.Context, conn *pgx.Conn, sql string, values ...any) error {
	_, err := conn.Exec(ctx, sql, values...)
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// one returns the one value of the one row that sql gives.
func one[T any](t *testing.T, ctx context.Context, conn *pgx.Conn, sql string, values ...any) T {
	t.Helper()
	rows, err := conn.Query(ctx, sql, values...)
	must(t, err)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%.80s: %v", sql, err)
	}
	return value
}

func expect[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func expectCode(t *testing.T, err error, code string) {
	t.Helper()
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != code {
		t.Fatalf("got %v, want SQLSTATE %s", err, code)
	}
}

func TestServerParametersAreThoseOfAServer(t *testing.T) {
	_, conn := open(t, nil)
	expect(t, conn.PgConn().ParameterStatus("client_encoding"), "UTF8")
	expect(t, conn.PgConn().ParameterStatus("standard_conforming_strings"), "on")
	if conn.PgConn().ParameterStatus("server_version") == "" || conn.PgConn().PID() == 0 {
		t.Fatal("no server_version or no process id")
	}
}

func TestWrongPasswordIsRefused(t *testing.T) {
	_, err := connect(limit(t), func(c *pgx.ConnConfig) { c.Password = "wrong" })
	expectCode(t, err, "28P01")
}

func TestEveryQueryModeGivesTheSameAnswers(t *testing.T) {
	modes := map[string]pgx.QueryExecMode{
		"cache statement": pgx.QueryExecModeCacheStatement,
		"cache describe":  pgx.QueryExecModeCacheDescribe,
		"describe exec":   pgx.QueryExecModeDescribeExec,
		"exec":            pgx.QueryExecModeExec,
		"simple protocol": pgx.QueryExecModeSimpleProtocol,
	}
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			ctx, conn := open(t, func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = mode })
			for i := range 60 {
				expect(t, one[int32](t, ctx, conn, "select $1::int * 2", i), int32(i*2))
				expect(t, one[string](t, ctx, conn, "select $1::text || 'x'", "é"), "éx")
			}
		})
	}
}

func TestPreparedStatementsAreClosedWhenThereAreTooMany(t *testing.T) {
	ctx, conn := open(t, func(c *pgx.ConnConfig) { c.StatementCacheCapacity = 3 })
	for turn := range 5 {
		for n := range 10 {
			sql := fmt.Sprintf("select $1::int + %d", n)
			expect(t, one[int32](t, ctx, conn, sql, turn), int32(n+turn))
		}
	}
}

func TestPreparedStatementsSurviveAChangeOfServers(t *testing.T) {
	ctx := limit(t)
	var clients []*pgx.Conn
	for i := range 12 {
		conn, err := connect(ctx, nil)
		must(t, err)
		defer conn.Close(ctx)
		_, err = conn.Prepare(ctx, "same", fmt.Sprintf("select $1::int + %d", i))
		must(t, err)
		clients = append(clients, conn)
	}
	for turn := range 20 {
		// A window of clients holds servers in transactions, so the servers rotate.
		window := []int{turn % 12, (turn + 1) % 12, (turn + 2) % 12, (turn + 3) % 12}
		for _, i := range window {
			must(t, exec(ctx, clients[i], "begin"))
			expect(t, one[int32](t, ctx, clients[i], "same", turn), int32(turn+i))
		}
		for _, i := range window {
			must(t, exec(ctx, clients[i], "commit"))
		}
	}
}

type kinds struct {
	I    *int32
	Big  *int64
	N    pgtype.Numeric
	F    *float64
	T    *string
	B    []byte
	At   *time.Time
	U    pgtype.UUID
	J    *string
	A    []*int32
	TA   []string
	Flag *bool
}

func ptr[T any](value T) *T { return &value }

func TestTypesMakeTheRoundTrip(t *testing.T) {
	for name, mode := range map[string]pgx.QueryExecMode{
		"binary": pgx.QueryExecModeCacheStatement,
		"text":   pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, conn := open(t, func(c *pgx.ConnConfig) { c.DefaultQueryExecMode = mode })
			name := table(t, ctx, conn, `(id int, i int, big bigint, n numeric, f float8, t text, b bytea,
				at timestamptz, u uuid, j jsonb, a int[], ta text[], flag bool)`)
			var number pgtype.Numeric
			must(t, number.Scan("12345678901234567890.123456789"))
			all := []kinds{
				{ptr[int32](math.MinInt32), ptr[int64](math.MaxInt64), number, ptr(0.1), ptr("snow ☃ '\\\n"),
					[]byte{0, 1, 255}, ptr(time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)),
					pgtype.UUID{Bytes: [16]byte{1, 2, 3}, Valid: true}, ptr(`{"a": "ä", "n": 1.5}`),
					[]*int32{ptr[int32](1), nil, ptr[int32](-3)}, []string{"x", `quo"te, comma`, ""}, ptr(true)},
				{},
			}
			for id, k := range all {
				must(t, exec(ctx, conn, "insert into "+name+" values ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13)",
					id, k.I, k.Big, k.N, k.F, k.T, k.B, k.At, k.U, k.J, k.A, k.TA, k.Flag))
			}
			rows, err := conn.Query(ctx, "select i, big, n, f, t, b, at, u, j, a, ta, flag from "+name+" order by id")
			must(t, err)
			got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[kinds])
			must(t, err)
			for i := range got {
				if got[i].At != nil {
					got[i].At = ptr(got[i].At.UTC())
				}
			}
			if !reflect.DeepEqual(got, all) {
				t.Fatalf("got %+v\nwant %+v", got, all)
			}
		})
	}
}

func TestTransactionsCommitRollBackAndUndoToSavepoints(t *testing.T) {
	ctx, conn := open(t, nil)
	name := table(t, ctx, conn, "(a int primary key)")
	insert := "insert into " + name + " values ($1)"
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, insert, 1); err != nil {
			return err
		}
		inner := pgx.BeginFunc(ctx, tx, func(savepoint pgx.Tx) error {
			if _, err := savepoint.Exec(ctx, insert, 2); err != nil {
				return err
			}
			_, err := savepoint.Exec(ctx, insert, 1)
			return err
		})
		expectCode(t, inner, "23505")
		_, err := tx.Exec(ctx, insert, 3)
		return err
	})
	must(t, err)
	given := errors.New("given up")
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, insert, 4); err != nil {
			return err
		}
		return given
	})
	expect(t, errors.Is(err, given), true)
	expect(t, one[string](t, ctx, conn, "select array_agg(a order by a)::text from "+name), "{1,3}")
}

func TestErrorCarriesItsFieldsAndTheConnectionLivesOn(t *testing.T) {
	ctx, conn := open(t, nil)
	expectCode(t, exec(ctx, conn, "select 1 / $1::int", 0), "22012")
	expectCode(t, exec(ctx, conn, "select * from nowhere"), "42P01")
	expectCode(t, exec(ctx, conn, "selec 1"), "42601")
	expect(t, one[int32](t, ctx, conn, "select 1::int"), 1)
}

func TestCopyCarriesEveryRowInAndOut(t *testing.T) {
	ctx, conn := open(t, nil)
	name := table(t, ctx, conn, "(a int, t text)")
	source := pgx.CopyFromSlice(20_000, func(i int) ([]any, error) { return []any{i, fmt.Sprint("line ", i)}, nil })
	copied, err := conn.CopyFrom(ctx, pgx.Identifier{name}, []string{"a", "t"}, source)
	must(t, err)
	expect(t, copied, 20_000)
	var out bytes.Buffer
	_, err = conn.PgConn().CopyTo(ctx, &out, "copy (select * from "+name+" order by a) to stdout")
	must(t, err)
	expect(t, strings.Count(out.String(), "\n"), 20_000)
	expect(t, strings.HasPrefix(out.String(), "0\tline 0\n1\tline 1\n"), true)
	must(t, exec(ctx, conn, "truncate "+name))
	tag, err := conn.PgConn().CopyFrom(ctx, &out, "copy "+name+" from stdin")
	must(t, err)
	expect(t, tag.RowsAffected(), 20_000)
	_, err = conn.PgConn().CopyFrom(ctx, strings.NewReader("no number\tx\n"), "copy "+name+" from stdin")
	expectCode(t, err, "22P02")
	failing := errors.New("given up by the client")
	_, err = conn.CopyFrom(ctx, pgx.Identifier{name}, []string{"a", "t"},
		pgx.CopyFromFunc(func() ([]any, error) { return nil, failing }))
	expectCode(t, err, "57014")
	expect(t, one[int64](t, ctx, conn, "select count(*) from "+name), 20_000)
}

func TestLargeValuesPassBothWays(t *testing.T) {
	ctx, conn := open(t, nil)
	text := strings.Repeat("0123456789", large/10)
	expect(t, one[string](t, ctx, conn, "select $1::text", text) == text, true)
	raw := bytes.Repeat([]byte{0, 1, 2, 255}, large/4)
	expect(t, bytes.Equal(one[[]byte](t, ctx, conn, "select $1::bytea", raw), raw), true)
}

func TestBatchIsPipelinedAndAnswersInOrder(t *testing.T) {
	ctx, conn := open(t, nil)
	name := table(t, ctx, conn, "(a int primary key)")
	batch := &pgx.Batch{}
	for i := range 300 {
		batch.Queue("insert into "+name+" values ($1)", i)
		batch.Queue("select $1::int * 2", i)
	}
	results := conn.SendBatch(ctx, batch)
	for i := range 300 {
		tag, err := results.Exec()
		must(t, err)
		expect(t, tag.RowsAffected(), 1)
		var double int
		must(t, results.QueryRow().Scan(&double))
		expect(t, double, i*2)
	}
	must(t, results.Close())
	// An error undoes all of its batch: it is one implicit transaction.
	batch = &pgx.Batch{}
	batch.Queue("insert into "+name+" values ($1)", 1000)
	batch.Queue("insert into "+name+" values ($1)", 1)
	expectCode(t, conn.SendBatch(ctx, batch).Close(), "23505")
	expect(t, one[int64](t, ctx, conn, "select count(*) from "+name), 300)
}

func TestPipelineWithManySyncs(t *testing.T) {
	ctx, conn := open(t, nil)
	pipeline := conn.PgConn().StartPipeline(ctx)
	for i := range 50 {
		sql := fmt.Sprintf("select %d", i)
		if i%10 == 5 {
			sql = "select 1/0"
		}
		pipeline.SendQueryParams(sql, nil, nil, nil, nil)
		must(t, pipeline.Sync())
	}
	for i := range 50 {
		results, err := pipeline.GetResults()
		if i%10 == 5 {
			expectCode(t, err, "22012")
		} else {
			must(t, err)
			read := results.(*pgconn.ResultReader).Read()
			must(t, read.Err)
			expect(t, string(read.Rows[0][0]), fmt.Sprint(i))
		}
		results, err = pipeline.GetResults()
		must(t, err)
		if _, ok := results.(*pgconn.PipelineSync); !ok {
			t.Fatalf("got %T in the place of a Sync", results)
		}
	}
	must(t, pipeline.Close())
	expect(t, one[int32](t, ctx, conn, "select 1::int"), 1)
}

func TestCancelRequestEndsTheStatementAndTheConnectionLivesOn(t *testing.T) {
	ctx, conn := open(t, nil)
	cancelled := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { cancelled <- conn.PgConn().CancelRequest(ctx) })
	began := time.Now()
	expectCode(t, exec(ctx, conn, "select pg_sleep(60)"), "57014")
	must(t, <-cancelled)
	expect(t, time.Since(began) < 20*time.Second, true)
	expect(t, one[string](t, ctx, conn, "select 'usable'"), "usable")
}

func TestDeadlineGivesUpTheConnectionAndOthersGoOn(t *testing.T) {
	ctx, conn := open(t, nil)
	short, stop := context.WithTimeout(ctx, 200*time.Millisecond)
	defer stop()
	if err := exec(short, conn, "select pg_sleep(60)"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	_, other := open(t, nil)
	expect(t, one[string](t, ctx, other, "select 'usable'"), "usable")
}

func TestNoticesArrive(t *testing.T) {
	var heard []string
	ctx, conn := open(t, func(c *pgx.ConnConfig) {
		c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { heard = append(heard, n.Severity+" "+n.Message) }
	})
	must(t, exec(ctx, conn, "do $$ begin raise notice 'hello %', 42; raise warning 'careful'; end $$"))
	expect(t, strings.Join(heard, "; "), "NOTICE hello 42; WARNING careful")
}

func TestSettingsAtStartUpHoldOnEveryServer(t *testing.T) {
	ctx := limit(t)
	zones := []string{"Asia/Tokyo", "America/Lima", "Europe/Madrid"}
	var clients []*pgx.Conn
	for i := range 12 {
		conn, err := connect(ctx, func(c *pgx.ConnConfig) {
			c.RuntimeParams["TimeZone"] = zones[i%3]
			c.RuntimeParams["application_name"] = fmt.Sprint("app ", i)
		})
		must(t, err)
		defer conn.Close(ctx)
		clients = append(clients, conn)
	}
	show := "select current_setting('TimeZone') || ' ' || current_setting('application_name')"
	for range 10 {
		for i, conn := range clients {
			expect(t, one[string](t, ctx, conn, show), fmt.Sprint(zones[i%3], " app ", i))
		}
	}
}

// together runs work(0) to work(count-1), width at a time.
func together(t *testing.T, width, count int, work func(mark int) error) {
	t.Helper()
	slots := make(chan struct{}, width)
	var group sync.WaitGroup
	for mark := range count {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := work(mark); err != nil {
				t.Errorf("%d: %v", mark, err)
			}
		})
	}
	group.Wait()
}

func TestManyShortConnections(t *testing.T) {
	ctx := limit(t)
	together(t, 8, 300, func(mark int) error {
		conn, err := connect(ctx, nil)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		var got int
		if err := conn.QueryRow(ctx, "select $1::int", mark).Scan(&got); err != nil {
			return err
		}
		if got != mark {
			return fmt.Errorf("got %d", got)
		}
		return nil
	})
}

func TestNoReplyGoesToAnotherConnection(t *testing.T) {
	ctx := limit(t)
	config, err := pgxpool.ParseConfig("")
	must(t, err)
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	must(t, err)
	defer pool.Close()
	together(t, connections, connections, func(mark int) error {
		for turn := range 40 {
			own := fmt.Sprintf("%d:%d", mark, turn)
			err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if turn%3 == 0 {
					if _, err := tx.Exec(ctx, "select pg_sleep(0.001)"); err != nil {
						return err
					}
				}
				return expectOwn(ctx, tx, own)
			})
			if err == nil {
				err = expectOwn(ctx, pool, own)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

type querier interface {
	QueryRow(ctx context.Context, sql string, values ...any) pgx.Row
}

func expectOwn(ctx context.Context, on querier, own string) error {
	var prepared, simple string
	if err := on.QueryRow(ctx, "select $1::text", own).Scan(&prepared); err != nil {
		return err
	}
	if err := on.QueryRow(ctx, "select $1::text", pgx.QueryExecModeSimpleProtocol, own).Scan(&simple); err != nil {
		return err
	}
	if prepared != own || simple != own {
		return fmt.Errorf("got %q and %q, want %q", prepared, simple, own)
	}
	return nil
}

// Calls of one row at the same time: they ride trains, which do not wait for the disk, and each has
// its own answer.
func TestCallsOfOneRowRideTrains(t *testing.T) {
	ctx, conn := open(t, nil)
	name := table(t, ctx, conn, " (id int primary key, n int default 0, rode bool default false)")
	must(t, exec(ctx, conn, "insert into "+name+" (id) select generate_series(1, 3)"))
	must(t, exec(ctx, conn, "create procedure add_"+name+"(p_id int, inout p_n int) language plpgsql as $$ begin"+
		" update "+name+" set n = n + 1, rode = rode or current_setting('synchronous_commit') = 'off'"+
		" where id = p_id returning n into p_n; end $$"))
	must(t, exec(ctx, conn, "comment on procedure add_"+name+" is '@pondage key=p_id'"))
	rounds, rode := 0, false
	for ; !rode && rounds < 20; rounds++ {
		together(t, connections, connections, func(mark int) error {
			own, err := connect(ctx, nil)
			if err != nil {
				return err
			}
			defer own.Close(ctx)
			last := 0
			for range 20 {
				var n int
				if err := own.QueryRow(ctx, "call add_"+name+"($1, 0)", mark%3+1).Scan(&n); err != nil {
					return err
				}
				if n <= last {
					return fmt.Errorf("got %d after %d", n, last)
				}
				last = n
			}
			return nil
		})
		must(t, conn.QueryRow(ctx, "select bool_or(rode) from "+name).Scan(&rode))
	}
	if !rode {
		t.Error("no call rode a train")
	}
	var total int
	must(t, conn.QueryRow(ctx, "select sum(n)::int from "+name).Scan(&total))
	if total != rounds*connections*20 {
		t.Errorf("got %d, want %d", total, rounds*connections*20)
	}
	must(t, exec(ctx, conn, "drop procedure add_"+name))
}
