package pondage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Types;
import java.time.Duration;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.TimeZone;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.util.PGobject;

/** pgjdbc in a pool of transactions: everything an application does, on shared servers. */
class PgjdbcTest {
  /** Far beyond the pool's size, so that every statement may meet another server. */
  private static final int CONNECTIONS = 50;

  /** Bytes of a value larger than any buffer on the way. */
  private static final int LARGE = 5_000_000;

  private Connection connection;
  private final String table = "t_" + UUID.randomUUID().toString().replace("-", "");

  @BeforeEach
  void open() throws SQLException {
    connection = connect();
  }

  @AfterEach
  void close() throws SQLException {
    connection.setAutoCommit(true);
    run("drop table if exists " + table);
    connection.close();
  }

  /** Connects with driver properties given as name, value, name, value. */
  private static Connection connect(String... options) throws SQLException {
    Properties properties = new Properties();
    properties.setProperty("user", System.getenv("PGUSER"));
    properties.setProperty("password", System.getenv("PGPASSWORD"));
    properties.setProperty("loginTimeout", "20");
    for (int i = 0; i < options.length; i += 2) {
      properties.setProperty(options[i], options[i + 1]);
    }
    String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/"
        + System.getenv("PGDATABASE");
    return DriverManager.getConnection(url, properties);
  }

  private void run(String sql) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute(sql);
    }
  }

  private static String one(Connection connection, String sql, Object... values) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      for (int i = 0; i < values.length; i++) {
        statement.setObject(i + 1, values[i]);
      }
      try (ResultSet rows = statement.executeQuery()) {
        assertTrue(rows.next(), sql);
        String value = rows.getString(1);
        assertFalse(rows.next(), sql);
        return value;
      }
    }
  }

  private String one(String sql, Object... values) throws SQLException {
    return one(connection, sql, values);
  }

  @Test
  void serverParametersAreThoseOfAServer() throws SQLException {
    assertTrue(connection.getMetaData().getDatabaseMajorVersion() >= 12);
    PGConnection pg = connection.unwrap(PGConnection.class);
    assertEquals("UTF8", pg.getParameterStatus("client_encoding"));
    assertEquals("on", pg.getParameterStatus("standard_conforming_strings"));
    assertTrue(pg.getBackendPID() > 0);
  }

  @Test
  void wrongPasswordIsRefused() {
    assertEquals("28P01", assertThrows(SQLException.class, () -> connect("password", "wrong").close()).getSQLState());
  }

  @ParameterizedTest
  @ValueSource(strings = {"simple", "extended", "extendedForPrepared", "extendedCacheEverything"})
  void everyQueryModeGivesTheSameAnswers(String mode) throws SQLException {
    try (Connection own = connect("preferQueryMode", mode)) {
      for (int i = 0; i < 30; i++) {
        assertEquals(String.valueOf(i * 2), one(own, "select ?::int * 2", i));
        assertEquals("x" + i, one(own, "select 'x' || " + i));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"-1", "1", "5"})
  void statementIsPreparedBeyondTheThresholdAndKeepsItsAnswers(String threshold) throws SQLException {
    try (Connection own = connect("prepareThreshold", threshold);
        PreparedStatement statement = own.prepareStatement("select ?::int * 2, ?::text")) {
      for (int i = 0; i < 60; i++) {
        statement.setInt(1, i);
        statement.setString(2, "n" + i);
        try (ResultSet rows = statement.executeQuery()) {
          assertTrue(rows.next());
          assertEquals(i * 2, rows.getInt(1));
          assertEquals("n" + i, rows.getString(2));
        }
      }
    }
  }

  @Test
  void preparedStatementsAreClosedWhenThereAreTooMany() throws SQLException {
    try (Connection own = connect("prepareThreshold", "1", "preparedStatementCacheQueries", "3")) {
      for (int turn = 0; turn < 5; turn++) {
        for (int n = 0; n < 10; n++) {
          assertEquals(String.valueOf(n + turn), one(own, "select ?::int + " + n, turn));
        }
      }
    }
  }

  @Test
  void preparedStatementsSurviveAChangeOfServers() throws SQLException {
    List<Connection> clients = new ArrayList<>();
    for (int i = 0; i < 12; i++) {
      clients.add(connect("prepareThreshold", "1"));
    }
    for (int turn = 0; turn < 20; turn++) {
      // All but one of a window hold a server in a transaction, so the servers rotate.
      for (int i = 0; i < 4; i++) {
        Connection client = clients.get((turn + i) % clients.size());
        client.setAutoCommit(false);
        assertEquals(String.valueOf(turn + i), one(client, "select ?::int + ?::int", turn, i));
      }
      for (int i = 0; i < 4; i++) {
        Connection client = clients.get((turn + i) % clients.size());
        client.commit();
        client.setAutoCommit(true);
      }
    }
    for (Connection client : clients) {
      client.close();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void typesMakeTheRoundTrip(boolean binary) throws SQLException {
    // With a threshold of 1 and binary transfer on, pgjdbc sends and reads most types in binary.
    try (Connection own = connect("binaryTransfer", String.valueOf(binary), "prepareThreshold", binary ? "1" : "0")) {
      try (Statement create = own.createStatement()) {
        create.execute("create table " + table + "(id int, i int, big bigint, n numeric, f float8, t text,"
            + " b bytea, at timestamptz, d date, u uuid, j jsonb, a int[], flag bool)");
      }
      OffsetDateTime at = OffsetDateTime.of(2024, 2, 29, 23, 59, 59, 123456000, ZoneOffset.UTC);
      UUID uuid = UUID.fromString("12345678-1234-5678-1234-567812345678");
      BigDecimal number = new BigDecimal("12345678901234567890.123456789");
      byte[] bytes = {0, 1, (byte) 255};
      PGobject json = new PGobject();
      json.setType("jsonb");
      json.setValue("{\"a\": [1, null, \"ä\"]}");
      String insert = "insert into " + table + " values (?,?,?,?,?,?,?,?,?,?,?,?,?)";
      for (int turn = 0; turn < 10; turn++) {
        try (PreparedStatement s = own.prepareStatement(insert)) {
          Object[] values = {turn, 42, Long.MIN_VALUE, number, 0.1, "snow ☃ '\\\n", bytes, at,
              LocalDate.of(1999, 12, 31), uuid, json, own.createArrayOf("int4", new Integer[] {1, null, -3}), true};
          for (int i = 0; i < values.length; i++) {
            s.setObject(i + 1, values[i]);
          }
          assertEquals(1, s.executeUpdate());
        }
        try (PreparedStatement s = own.prepareStatement("select * from " + table + " where id = ?")) {
          s.setInt(1, turn);
          try (ResultSet row = s.executeQuery()) {
            assertTrue(row.next());
            assertEquals(42, row.getInt(2));
            assertEquals(Long.MIN_VALUE, row.getLong(3));
            assertEquals(number, row.getBigDecimal(4));
            assertEquals(0.1, row.getDouble(5));
            assertEquals("snow ☃ '\\\n", row.getString(6));
            assertArrayEquals(bytes, row.getBytes(7));
            assertEquals(at, row.getObject(8, OffsetDateTime.class));
            assertEquals(LocalDate.of(1999, 12, 31), row.getObject(9, LocalDate.class));
            assertEquals(uuid, row.getObject(10));
            assertEquals(json.getValue(), row.getString(11));
            assertArrayEquals(new Integer[] {1, null, -3}, (Integer[]) row.getArray(12).getArray());
            assertTrue(row.getBoolean(13));
          }
        }
      }
      try (PreparedStatement s = own.prepareStatement("select ?::int, ?::text, ?::bytea, ?::timestamptz")) {
        for (int i = 1; i <= 4; i++) {
          s.setNull(i, new int[] {Types.INTEGER, Types.VARCHAR, Types.BINARY, Types.TIMESTAMP_WITH_TIMEZONE}[i - 1]);
        }
        try (ResultSet row = s.executeQuery()) {
          assertTrue(row.next());
          for (int i = 1; i <= 4; i++) {
            assertNull(row.getObject(i));
          }
        }
      }
    }
  }

  @Test
  void transactionsCommitRollBackAndUndoToSavepoints() throws SQLException {
    run("create table " + table + "(a int primary key)");
    connection.setAutoCommit(false);
    run("insert into " + table + " values (1)");
    Savepoint savepoint = connection.setSavepoint();
    SQLException twice = assertThrows(SQLException.class, () -> run("insert into " + table + " values (1)"));
    assertEquals("23505", twice.getSQLState());
    assertEquals("25P02", assertThrows(SQLException.class, () -> run("select 1")).getSQLState());
    connection.rollback(savepoint);
    run("insert into " + table + " values (2)");
    connection.commit();
    run("insert into " + table + " values (3)");
    connection.rollback();
    connection.setAutoCommit(true);
    assertEquals("{1,2}", one("select array_agg(a order by a)::text from " + table));
  }

  @Test
  void isolationAndReadOnlyHoldForTheirTransaction() throws SQLException {
    connection.setAutoCommit(false);
    run("set transaction isolation level serializable read only");
    assertEquals("serializable", one("show transaction_isolation"));
    SQLException refused = assertThrows(SQLException.class, () -> run("create table " + table + "(a int)"));
    assertEquals("25006", refused.getSQLState());
    connection.rollback();
    connection.setAutoCommit(true);
    assertEquals("read committed", one("show transaction_isolation"));
  }

  @Test
  void errorCarriesItsFieldsAndTheConnectionLivesOn() throws SQLException {
    SQLException caught = assertThrows(SQLException.class, () -> one("select 1 / ?::int", 0));
    assertEquals("22012", caught.getSQLState());
    caught = assertThrows(SQLException.class, () -> run("select * from nowhere"));
    assertEquals("42P01", caught.getSQLState());
    assertEquals("1", one("select 1"));
  }

  @Test
  void copyCarriesEveryRowInAndOut() throws Exception {
    run("create table " + table + "(a int, t text)");
    StringBuilder lines = new StringBuilder();
    for (int i = 0; i < 20_000; i++) {
      lines.append(i).append("\tline ").append(i).append('\n');
    }
    CopyManager copy = connection.unwrap(PGConnection.class).getCopyAPI();
    assertEquals(20_000, copy.copyIn("copy " + table + " from stdin", new StringReader(lines.toString())));
    StringWriter out = new StringWriter();
    assertEquals(20_000, copy.copyOut("copy (select * from " + table + " order by a) to stdout", out));
    assertEquals(lines.toString(), out.toString());
    SQLException caught = assertThrows(SQLException.class,
        () -> copy.copyIn("copy " + table + " from stdin", new StringReader("no number\tx\n")));
    assertEquals("22P02", caught.getSQLState());
    assertEquals("20000", one("select count(*) from " + table));
  }

  @Test
  void largeValuesPassBothWays() throws SQLException {
    String text = "0123456789".repeat(LARGE / 10);
    assertTrue(text.equals(one("select ?::text", text)));
    byte[] raw = new byte[LARGE];
    for (int i = 0; i < raw.length; i++) {
      raw[i] = (byte) i;
    }
    try (PreparedStatement statement = connection.prepareStatement("select ?::bytea")) {
      statement.setBytes(1, raw);
      try (ResultSet rows = statement.executeQuery()) {
        assertTrue(rows.next());
        assertTrue(Arrays.equals(raw, rows.getBytes(1)));
      }
    }
  }

  @Test
  void batchIsPipelinedAndItsErrorNamesTheRow() throws SQLException {
    run("create table " + table + "(a int primary key, t text)");
    connection.setAutoCommit(false);
    try (PreparedStatement insert = connection.prepareStatement("insert into " + table + " values (?, ?)")) {
      for (int i = 0; i < 5_000; i++) {
        insert.setInt(1, i);
        insert.setString(2, "row " + i);
        insert.addBatch();
      }
      assertEquals(5_000, IntStream.of(insert.executeBatch()).sum());
      connection.commit();
      for (int key : new int[] {10_000, 1, 10_001}) {
        insert.setInt(1, key);
        insert.setString(2, "");
        insert.addBatch();
      }
      assertEquals("23505", assertThrows(BatchUpdateException.class, insert::executeBatch).getSQLState());
      connection.rollback();
    }
    connection.setAutoCommit(true);
    assertEquals("5000", one("select count(*) from " + table));
  }

  @Test
  void portalIsFetchedInParts() throws SQLException {
    connection.setAutoCommit(false);
    try (Statement statement = connection.createStatement()) {
      statement.setFetchSize(33);
      try (ResultSet rows = statement.executeQuery("select g from generate_series(1, 1000) g")) {
        for (int expected = 1; expected <= 1000; expected++) {
          assertTrue(rows.next());
          assertEquals(expected, rows.getInt(1));
        }
        assertFalse(rows.next());
      }
    }
    connection.commit();
  }

  @Test
  void queryTimeoutCancelsAndTheConnectionLivesOn() throws SQLException {
    long began = System.nanoTime();
    try (Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(1);
      SQLException caught =
          assertThrows(SQLException.class, () -> statement.executeQuery("select pg_sleep(60)"));
      assertEquals("57014", caught.getSQLState());
    }
    assertTrue(Duration.ofNanos(System.nanoTime() - began).toSeconds() < 20);
    assertEquals("usable", one("select 'usable'"));
  }

  @Test
  void noticesArrive() throws SQLException {
    try (Statement statement = connection.createStatement()) {
      statement.execute("do $$ begin raise notice 'hello %', 42; raise warning 'careful'; end $$");
      assertEquals("hello 42", statement.getWarnings().getMessage());
      assertEquals("careful", statement.getWarnings().getNextWarning().getMessage());
    }
  }

  @Test
  void settingsAtStartUpHoldOnEveryServer() throws SQLException {
    // pgjdbc sends the zone of the virtual machine in its start-up packet.
    TimeZone before = TimeZone.getDefault();
    String[] zones = {"Asia/Tokyo", "America/Lima", "Europe/Madrid"};
    List<Connection> clients = new ArrayList<>();
    try {
      for (int i = 0; i < 12; i++) {
        TimeZone.setDefault(TimeZone.getTimeZone(zones[i % 3]));
        clients.add(connect("ApplicationName", "app " + i));
      }
    } finally {
      TimeZone.setDefault(before);
    }
    String show = "select current_setting('TimeZone') || ' ' || current_setting('application_name')";
    for (int turn = 0; turn < 10; turn++) {
      for (int i = 0; i < clients.size(); i++) {
        assertEquals(zones[i % 3] + " app " + i, one(clients.get(i), show));
      }
    }
    clients.get(0).setClientInfo("ApplicationName", "changed");
    assertEquals("changed", one(clients.get(0), "show application_name"));
    assertEquals("app 1", one(clients.get(1), "show application_name"));
    for (Connection client : clients) {
      client.close();
    }
  }

  /** Runs {@code count} tasks on {@code threads} threads and fails with the first failure. */
  private static void together(int threads, int count, ThrowingIntConsumer task) throws Exception {
    ExecutorService workers = Executors.newFixedThreadPool(threads);
    try {
      List<Callable<Void>> tasks = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        int mark = i;
        tasks.add(() -> {
          task.accept(mark);
          return null;
        });
      }
      for (Future<Void> done : workers.invokeAll(tasks)) {
        done.get();
      }
    } finally {
      workers.shutdownNow();
    }
  }

  private interface ThrowingIntConsumer {
    void accept(int mark) throws Exception;
  }

  @Test
  void manyShortConnections() throws Exception {
    together(8, 200, mark -> {
      try (Connection own = connect()) {
        assertEquals(String.valueOf(mark), one(own, "select ?::int", mark));
      }
    });
  }

  @Test
  void noReplyGoesToAnotherConnection() throws Exception {
    together(CONNECTIONS, CONNECTIONS, mark -> {
      try (Connection own = connect("prepareThreshold", "2")) {
        for (int turn = 0; turn < 40; turn++) {
          String expected = mark + ":" + turn;
          boolean transaction = turn % 3 == 0;
          own.setAutoCommit(!transaction);
          if (transaction) {
            assertEquals("", one(own, "select pg_sleep(0.001)::text"));
          }
          assertEquals(expected, one(own, "select ?::text", expected));
          assertEquals(expected, one(own, "select '" + expected + "'"));
          if (transaction) {
            own.commit();
          }
        }
      }
    });
  }

  /** Calls in the ways of JDBC, of one row at the same time: they ride trains, each with its own answer. */
  @Test
  void callsOfOneRowRideTrains() throws Exception {
    run("create table " + table + "(id int primary key, n int default 0, rode bool default false)");
    run("insert into " + table + "(id) select generate_series(1, 3)");
    String body = "update " + table + " set n = n + 1,"
        + " rode = rode or current_setting('synchronous_commit') = 'off' where id = p_id";
    run("create procedure add_" + table + "(p_id int) language plpgsql as $$ begin " + body + "; end $$");
    run("create function count_" + table + "(p_id int) returns int language plpgsql as $$"
        + " declare counted int; begin " + body + " returning n into counted; return counted; end $$");
    run("comment on procedure add_" + table + " is '@pondage key=p_id'");
    run("comment on function count_" + table + " is '@pondage key=p_id'");
    int rounds = 0;
    do {
      together(CONNECTIONS, CONNECTIONS, mark -> {
        try (Connection own = connect("escapeSyntaxCallMode", "callIfNoReturn")) {
          for (int turn = 0; turn < 10; turn++) {
            try (var call = own.prepareCall("{call add_" + table + "(?)}")) {
              call.setInt(1, mark % 3 + 1);
              call.execute();
            }
            try (var call = own.prepareCall("{? = call count_" + table + "(?)}")) {
              call.registerOutParameter(1, Types.INTEGER);
              call.setInt(2, mark % 3 + 1);
              call.execute();
              assertTrue(call.getInt(1) > 0);
            }
          }
        }
      });
      rounds++;
    } while (rounds < 20 && one("select bool_or(rode) from " + table).equals("f"));
    assertEquals("t", one("select bool_or(rode) from " + table));
    assertEquals(String.valueOf(rounds * CONNECTIONS * 20), one("select sum(n) from " + table));
    run("drop procedure add_" + table);
    run("drop function count_" + table);
  }
}
