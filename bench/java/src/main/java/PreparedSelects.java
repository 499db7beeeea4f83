import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Threads with a connection each run `select id from test tN where id = ?`, prepared once, again
 * and again. The alias makes the texts differ: thread T has that of number T modulo the count of
 * texts. pgjdbc's own settings hold: from the fifth execution on the statement has a name on the
 * server. Every answer is checked.
 *
 * <p>Prints `statements=N warm_up=N seconds=S` for all threads together; the seconds go from the
 * moment when all have warmed up to the end of the last one.
 */
public final class PreparedSelects {
    private final String url;
    private final Properties properties = new Properties();
    private final int texts;
    private final int statements;
    private final int warmUp;
    private final int rows;
    private final CyclicBarrier warm;
    private volatile long began;

    private PreparedSelects(String[] arguments) {
        url = "jdbc:postgresql://" + arguments[0] + ":" + arguments[1] + "/" + arguments[3];
        properties.setProperty("user", arguments[2]);
        properties.setProperty("sslmode", "disable");
        int threads = Integer.parseInt(arguments[4]);
        texts = Integer.parseInt(arguments[5]);
        statements = Integer.parseInt(arguments[6]);
        warmUp = Integer.parseInt(arguments[7]);
        rows = Integer.parseInt(arguments[8]);
        warm = new CyclicBarrier(threads, () -> began = System.nanoTime());
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 9) {
            System.err.println(
                    "usage: HOST PORT USER DATABASE THREADS TEXTS STATEMENTS WARM_UP ROWS");
            System.exit(2);
        }
        PreparedSelects load = new PreparedSelects(arguments);
        int threads = load.warm.getParties();
        double seconds = load.run(threads);
        System.out.printf(
                "statements=%d warm_up=%d seconds=%.6f%n",
                (long) threads * load.statements, (long) threads * load.warmUp, seconds);
    }

    private double run(int threads) throws Exception {
        ExecutorService workers = Executors.newFixedThreadPool(threads);
        try {
            List<Future<Long>> ends = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                int number = thread;
                ends.add(workers.submit(() -> one(number)));
            }
            long last = Long.MIN_VALUE;
            for (Future<Long> end : ends) {
                last = Math.max(last, end.get());
            }
            return (last - began) / 1e9;
        } finally {
            // A thread that failed leaves the others at the barrier.
            workers.shutdownNow();
        }
    }

    /** When it ended. */
    private long one(int number) throws Exception {
        String text = "select id from test t" + number % texts + " where id = ?";
        try (Connection connection = DriverManager.getConnection(url, properties);
                PreparedStatement statement = connection.prepareStatement(text)) {
            repeat(statement, warmUp);
            warm.await();
            repeat(statement, statements);
            return System.nanoTime();
        }
    }

    private void repeat(PreparedStatement statement, int times) throws SQLException {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        for (int time = 0; time < times; time++) {
            int id = random.nextInt(rows) + 1;
            statement.setInt(1, id);
            try (ResultSet result = statement.executeQuery()) {
                if (!result.next() || result.getInt(1) != id || result.next()) {
                    throw new SQLException("asked for " + id + ", got another answer");
                }
            }
        }
    }
}
