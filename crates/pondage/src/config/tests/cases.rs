/// A text, and the whole report it leads to.
pub const CASES: &[(&str, &str)] = &[
    (
        "[databases.app]\npool_size = 10s\n",
        r#"
error[P0101]: string values must be quoted, expected literal string
  --> pondage.toml:2:13
  |
2 | pool_size = 10s
  |             ^^^
"#,
    ),
    (
        "[databases.app]\n[database.web]\n",
        r#"
error[P0102]: unknown section `database`
  --> pondage.toml:2:2
  |
2 | [database.web]
  |  ^^^^^^^^
  = help: did you mean `databases`?
"#,
    ),
    (
        "[databases.app]\npool_sise = 5 # five\n",
        r#"
error[P0103]: unknown key `pool_sise`
  --> pondage.toml:2:1
  |
2 | pool_sise = …
  | ^^^^^^^^^
  = help: did you mean `pool_size`?
"#,
    ),
    (
        "[databases.app]\n[pool]\nquery_wait_timeout = 5\n",
        r#"
error[P0103]: unknown key `query_wait_timeout`
  --> pondage.toml:3:1
  |
3 | query_wait_timeout = …
  | ^^^^^^^^^^^^^^^^^^
  = help: PgBouncer's `query_wait_timeout` is `wait_timeout` in `[pool]`
"#,
    ),
    (
        "[databases.app]\n[pool]\nmax_clients = 5\n",
        r#"
error[P0103]: unknown key `max_clients`
  --> pondage.toml:3:1
  |
3 | max_clients = …
  | ^^^^^^^^^^^
  = help: `max_clients` may stand in `[runtime]`, `[redis]`
"#,
    ),
    (
        "[databases.app.users.report]\npassword = \"hunter2\"\n",
        r#"
error[P0103]: unknown key `password`
  --> pondage.toml:2:1
  |
2 | password = …
  | ^^^^^^^^
  = help: a user has one password for all databases: `[users.NAME]`
"#,
    ),
    (
        "[databases.app]\n[mirror]\nmode = \"auto\"\n",
        r#"
error[P0102]: unknown section `mirror`
  --> pondage.toml:2:2
  |
2 | [mirror]
  |  ^^^^^^
"#,
    ),
    (
        "[databases.app]\npool_size = \"many\" # hunter2\n",
        r#"
error[P0104]: `pool_size` is "many"; expected a whole number from 1 to 262143
  --> pondage.toml:2:13
  |
2 | pool_size = "many"
  |             ^^^^^^
"#,
    ),
    (
        "[users.app]\npassword = 5\n[databases.app]\n",
        r#"
error[P0104]: `password` is a whole number; expected text
  --> pondage.toml:2:12
  |
2 | password = …
  |            ^
"#,
    ),
    (
        "pool = 5\n[databases.app]\n",
        r#"
error[P0104]: `pool` is a section, not a value
  --> pondage.toml:1:1
  |
1 | pool = …
  | ^^^^
"#,
    ),
    (
        "[[databases]]\nname = \"app\"\n",
        r#"
error[P0104]: `databases` is a list of sections; expected one
  --> pondage.toml:1:3
  |
1 | [[databases]]
  |   ^^^^^^^^^
"#,
    ),
    (
        "[databases.app.mode]\n",
        r#"
error[P0104]: `mode` is a value, not a section
  --> pondage.toml:1:16
  |
1 | [databases.app.mode]
  |                ^^^^
"#,
    ),
    (
        "[databases.app]\nmode = \"transactions\"\npool_size = 0\nserver_lifetime = \"9999d\"\n",
        r#"
error[P0105]: `mode` is "transactions"; expected one of session, transaction, statement
  --> pondage.toml:2:8
  |
2 | mode = "transactions"
  |        ^^^^^^^^^^^^^^

error[P0105]: `pool_size` is 0; expected a whole number from 1 to 262143
  --> pondage.toml:3:13
  |
3 | pool_size = 0
  |             ^

error[P0105]: `server_lifetime` is "9999d"; expected a duration such as "5s", or 0 (never)
  --> pondage.toml:4:19
  |
4 | server_lifetime = "9999d"
  |                   ^^^^^^^
  = note: the longest duration is 3650d
"#,
    ),
    (
        "[databases.app]\nhost = \"db.example:5432\"\n[auth]\nquery_user = \"a\"\nquery = \"SELECT 1\"\n",
        r#"
error[P0105]: `host` is "db.example:5432"; expected a host name, an address, or a directory that starts with /
  --> pondage.toml:2:8
  |
2 | host = "db.example:5432"
  |        ^^^^^^^^^^^^^^^^^
  = help: the port of `host` stands in `port`

error[P0105]: `query` has no $1, which stands for the name of the user
  --> pondage.toml:5:9
  |
5 | query = "SELECT 1"
  |         ^^^^^^^^^^
"#,
    ),
    (
        "[databases.app]\nwait_timeout = 5\nquery_timeout = \"5 sec\"\n",
        r#"
error[P0106]: `wait_timeout` is 5 without a unit
  --> pondage.toml:2:16
  |
2 | wait_timeout = 5
  |                ^
  = help: write "5s" for seconds or "5ms" for milliseconds

error[P0106]: `query_timeout` is "5 sec", whose unit is unknown
  --> pondage.toml:3:17
  |
3 | query_timeout = "5 sec"
  |                 ^^^^^^^
  = help: units of durations are ms, s, m (or min), h and d
"#,
    ),
    (
        "databases.app = {}\nlisten.postgres = [\"*:6432\"]\nlisten.http = \"db.example:80\"\n",
        r#"
error[P0107]: `postgres` has "*:6432", which is no address to listen on
  --> pondage.toml:2:19
  |
2 | listen.postgres = ["*:6432"]
  |                   ^^^^^^^^^^
  = help: write "0.0.0.0:6432" or "[::]:6432"

error[P0107]: `http` has "db.example:80", which is no address to listen on
  --> pondage.toml:3:15
  |
3 | listen.http = "db.example:80"
  |               ^^^^^^^^^^^^^^^
  = help: write an IP address and a port such as "0.0.0.0:6432" or "[::]:6432", or "localhost:6432"
"#,
    ),
    (
        "databases.app = {}\nlisten.postgres = [\"unix:run\"]\n",
        r#"
error[P0107]: `postgres` has "unix:run", whose directory does not start with /
  --> pondage.toml:2:19
  |
2 | listen.postgres = ["unix:run"]
  |                   ^^^^^^^^^^^^
  = help: write "unix:/run/pondage", or "unix:/run/pondage/.s.PGSQL.6433"
"#,
    ),
    (
        "[databases.app]\nurl = \"mysql://root:hunter2@db/app\"\n",
        r#"
error[P0108]: the URL does not start with postgres:// or postgresql://
  --> pondage.toml:2:7
  |
2 | url = …
  |       ^
"#,
    ),
    (
        "[databases.app]\nurl = \"postgres://root:hun/ter2@db/app\"\n",
        r#"
error[P0108]: the URL has an @ or a second / after its host
  --> pondage.toml:2:7
  |
2 | url = …
  |       ^
  = help: in a password, write / as %2F, @ as %40 and ? as %3F
"#,
    ),
    (
        "[databases.app]\nhost = \"db\"\nurl = \"postgres://u:hunter2@db/app\"\n",
        r#"
error[P0109]: `url` says `host` already
  --> pondage.toml:3:7
  |
3 | url = …
  |       ^
"#,
    ),
    (
        "[databases.app]\n[users.a]\npassword = \"hunter2\"\npassword_file = \"/dev/null\"\n",
        r#"
error[P0109]: `password` and `password_file` say the same thing
  --> pondage.toml:4:17
  |
4 | password_file = "/dev/null"
  |                 ^^^^^^^^^^^
"#,
    ),
    (
        "[pool]\npool_size = 5\n[databases.app.users.report]\nmin_pool_size = 6\n",
        r#"
error[P0110]: min_pool_size is 6, above pool_size, which is 5
  --> pondage.toml:4:17
  |
4 | min_pool_size = 6
  |                 ^
"#,
    ),
    (
        "[databases.app]\n[listen.tls]\nmode = \"require\"\n[auth]\nquery = \"SELECT $1\"\n",
        r#"
error[P0111]: mode `require` needs `cert` and `key`
  --> pondage.toml:3:8
  |
3 | mode = "require"
  |        ^^^^^^^^^

error[P0111]: `query` needs `query_user`
  --> pondage.toml:5:9
  |
5 | query = "SELECT $1"
  |         ^^^^^^^^^^^
"#,
    ),
    (
        "[databases.app]\ntls_ca = \"/nowhere/ca.pem\"\n[auth]\nusers_file = \"/nowhere/users\"\n",
        r#"
error[P0112]: can't use /nowhere/ca.pem: No such file or directory
  --> pondage.toml:2:10
  |
2 | tls_ca = "/nowhere/ca.pem"
  |          ^^^^^^^^^^^^^^^^^

error[P0112]: can't use /nowhere/users: No such file or directory
  --> pondage.toml:4:14
  |
4 | users_file = "/nowhere/users"
  |              ^^^^^^^^^^^^^^^^
"#,
    ),
    (
        "[databases.app]\ntls_ca = \"/dev/null\"\n",
        r#"
error[P0112]: can't use /dev/null: it has no certificate in PEM form
  --> pondage.toml:2:10
  |
2 | tls_ca = "/dev/null"
  |          ^^^^^^^^^^^
"#,
    ),
    (
        "[databases.app]\n[listen]\npostgres = [\"127.0.0.1:1\", \"localhost:1\"]\n",
        r#"
error[P0114]: `postgres` has "127.0.0.1:1" twice
  --> pondage.toml:3:12
  |
3 | postgres = ["127.0.0.1:1", "localhost:1"]
  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#,
    ),
    (
        "[databases.app]\n[listen]\nhttp = \"127.0.0.1:6432\"\n",
        r#"
error[P0114]: `http` and `postgres` both listen on 127.0.0.1:6432
  --> pondage.toml:3:8
  |
3 | http = "127.0.0.1:6432"
  |        ^^^^^^^^^^^^^^^^
"#,
    ),
    (
        "[databases.pgbouncer]\n[users.\"\"]\n[users.\"*\"]\n",
        r#"
error[P0115]: the database name `pgbouncer` is the console's
  --> pondage.toml:1:12
  |
1 | [databases.pgbouncer]
  |            ^^^^^^^^^
  = help: give it another name here and set `dbname`

error[P0115]: `` can't be the name of a user
  --> pondage.toml:2:8
  |
2 | [users.""]
  |        ^^
  = note: names have 1 to 63 bytes and no control characters

error[P0115]: `*` is no user
  --> pondage.toml:3:8
  |
3 | [users."*"]
  |        ^^^
  = help: what is the same for every user stands in `[pool]`
"#,
    ),
    (
        "[databases.app]\ntls_max_version = \"tlsv1.1\"\n[listen.tls]\nmin_version = \"TLSv1\"\n\
         max_version = \"SSLv3\"\n",
        r#"
error[P0122]: `tls_max_version` is tlsv1.1, which is not offered
  --> pondage.toml:2:19
  |
2 | tls_max_version = "tlsv1.1"
  |                   ^^^^^^^^^
  = help: TLS 1.0 and 1.1 are broken (RFC 8996); "TLSv1.2" is the oldest here

error[P0122]: `min_version` is TLSv1, which is not offered
  --> pondage.toml:4:15
  |
4 | min_version = "TLSv1"
  |               ^^^^^^^
  = help: TLS 1.0 and 1.1 are broken (RFC 8996); "TLSv1.2" is the oldest here

error[P0105]: `max_version` is "SSLv3"; expected one of TLSv1.2, TLSv1.3
  --> pondage.toml:5:15
  |
5 | max_version = "SSLv3"
  |               ^^^^^^^
"#,
    ),
    (
        "[databases.app]\ntls_min_version = \"TLSv1.3\"\ntls_max_version = \"TLSv1.2\"\n\
         tls_negotiation = \"direct\"\n",
        r#"
error[P0110]: `tls_min_version` is newer than `tls_max_version`
  --> pondage.toml:2:19
  |
2 | tls_min_version = "TLSv1.3"
  |                   ^^^^^^^^^

error[P0110]: `tls_negotiation = "direct"` leaves no way back to a connection without TLS
  --> pondage.toml:4:19
  |
4 | tls_negotiation = "direct"
  |                   ^^^^^^^^
  = help: set `tls_mode` to "require", "verify-ca" or "verify-full"
"#,
    ),
    (
        "[databases.app]\n[listen]\nproxied = [\"0.0.0.0:6434\", \"127.0.0.1:6432\"]\n",
        r#"
error[P0114]: `proxied` and `postgres` both listen on 127.0.0.1:6432
  --> pondage.toml:3:11
  |
3 | proxied = ["0.0.0.0:6434", "127.0.0.1:6432"]
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

error[P0111]: `proxied` needs `proxies`: whose word counts?
  --> pondage.toml:3:11
  |
3 | proxied = ["0.0.0.0:6434", "127.0.0.1:6432"]
  |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: list where the proxies are, such as `proxies = ["10.0.0.0/8"]`
"#,
    ),
    (
        "[databases.app]\n[listen]\nproxied = \"127.0.0.1:6434\"\nproxies = [\"10.0.0.0/33\"]\n",
        r#"
error[P0123]: `proxies` has "10.0.0.0/33", which is no network
  --> pondage.toml:4:11
  |
4 | proxies = ["10.0.0.0/33"]
  |           ^^^^^^^^^^^^^^^
  = help: such as "10.1.0.0/16" or "fd00::/8", or "10.1.2.3" for one address
"#,
    ),
    (
        "[runtime]\nmax_clients = 5\n",
        r#"
error[P0117]: no database is configured
   = help: add a section `[databases.NAME]` with the `host` of its server
   = help: or set DATABASE_URL=postgres://user:password@host:5432/dbname
"#,
    ),
    (
        "[databases.app]\n[users.a]\npassword = \"SCRAM-SHA-256$hunter2\"\n",
        r#"
error[P0118]: `password` is a malformed SCRAM verifier
  --> pondage.toml:3:12
  |
3 | password = …
  |            ^
"#,
    ),
];
