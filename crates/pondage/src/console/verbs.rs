//! Every command of the console: its words and how it is written, what it does, and the errors of
//! its own. SHOW HELP, the hints of errors and the manual are made of it; nothing can be parsed or
//! run that is not here, see [`super::command::Act::verb`].

/// An SQLSTATE, and when it is told.
pub type Told = (&'static str, &'static str);

macro_rules! verbs {
    ($($variant:ident $words:literal as $usage:literal: $brief:literal, $about:literal,
        [$($code:literal: $when:literal),*];)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Verb {
            $($variant,)+
        }

        impl Verb {
            pub const ALL: &'static [Verb] = &[$(Verb::$variant,)+];

            /// What it begins with, in capitals.
            pub fn words(self) -> &'static str {
                match self {
                    $(Verb::$variant => $words,)+
                }
            }

            pub fn usage(self) -> &'static str {
                match self {
                    $(Verb::$variant => $usage,)+
                }
            }

            /// Plain text, for SHOW HELP.
            pub fn brief(self) -> &'static str {
                match self {
                    $(Verb::$variant => $brief,)+
                }
            }

            /// What the manual adds: Markdown, links from `docs/`.
            pub fn about(self) -> &'static str {
                match self {
                    $(Verb::$variant => $about,)+
                }
            }

            /// Beside those that every command may have.
            pub fn errors(self) -> &'static [Told] {
                match self {
                    $(Verb::$variant => &[$(($code, $when),)*],)+
                }
            }
        }
    };
}

verbs! {
    Reload "RELOAD" as "RELOAD":
        "Reads the configuration again and puts it into force.",
        "As HUP, see [Reload](operating.md#reload). A WARNING names each option that waits for a \
         restart.",
        ["F0000": "something in it is wrong; the detail has all of it, and the old one stays"];
    Pause "PAUSE" as "PAUSE [db]":
        "Keeps new transactions waiting; answers when no server is in use.",
        "Clients stay connected, and wait for up to `wait_timeout`. In session mode it answers when \
         all clients have left. Idle servers are closed.",
        ["3D000": "there is no such database",
         "55000": "everything is paused or suspended already, or it is the console's own database",
         "53400": "10,000 databases are paused or disabled by name already"];
    Resume "RESUME" as "RESUME [db]":
        "Ends PAUSE, and the pause that KILL leaves; without db SUSPEND, too.",
        "",
        ["3D000": "there is no such database",
         "55000": "it is not paused, or the process is shutting down"];
    Suspend "SUSPEND" as "SUSPEND":
        "Reads nothing more from clients and servers until RESUME.",
        "Answers when everything is written that was read before. What is said meanwhile waits in \
         the kernel, and no timeout runs. Who has not taken his bytes within \
         `runtime.suspend_timeout` is closed. Log-ins and the console go on. It ends, too, when the \
         last console client leaves, and with a shutdown.",
        ["55000": "something is paused or suspended already, or the process is shutting down"];
    Disable "DISABLE" as "DISABLE db":
        "Refuses new clients of a database.",
        "They are told P0316. Those that are connected go on.",
        ["3D000": "there is no such database",
         "55000": "it is the console's own database",
         "53400": "10,000 databases are paused or disabled by name already"];
    Enable "ENABLE" as "ENABLE db":
        "Ends DISABLE.",
        "",
        ["3D000": "there is no such database",
         "55000": "it is the console's own database",
         "53400": "10,000 databases are paused or disabled by name already"];
    Reconnect "RECONNECT" as "RECONNECT [db]":
        "Replaces the servers, each when it is free.",
        "Idle servers are closed at once, those in use when they come back, or, with \
         `server_fast_close`, at the end of the transaction. What [listens](pooling.md#listen) for \
         clients is replaced, and they notice nothing; clients that replicate are closed.",
        ["3D000": "there is no such database",
         "55000": "it is the console's own database"];
    WaitClose "WAIT_CLOSE" as "WAIT_CLOSE [db]":
        "Answers when no server from before the last RECONNECT or RELOAD is left.",
        "",
        ["3D000": "there is no such database",
         "55000": "it is the console's own database"];
    Kill "KILL" as "KILL [db]":
        "Closes clients and servers at once, and pauses until RESUME.",
        "The clients are told 57P01.",
        ["3D000": "there is no such database",
         "55000": "it is the console's own database",
         "53400": "10,000 databases are paused or disabled by name already"];
    KillClient "KILL_CLIENT" as "KILL_CLIENT id":
        "Closes the client with this id of SHOW CLIENTS.",
        "It is told 57P01.",
        ["42704": "there is no such client",
         "55000": "it has just left"];
    Set "SET" as "SET key = value":
        "Puts one option into force until the next RELOAD.",
        "That goes by the file again. `key` is one of SHOW CONFIG (`pool.pool_size`), or PgBouncer's \
         name (`default_pool_size`), its value then in PgBouncer's units. With an ini file every \
         option of `[pgbouncer]` can be set. Settings of PostgreSQL that drivers set \
         (`extra_float_digits`) are taken and ignored.",
        ["0A000": "there is no such option",
         "22023": "the value is none, or does not fit the others",
         "55P02": "it would need a restart"];
    Shutdown "SHUTDOWN" as "SHUTDOWN [WAIT_FOR_SERVERS|WAIT_FOR_CLIENTS|IMMEDIATE]":
        "Ends the process: at once, when no server is in use, or when the last client has left.",
        "`WAIT_FOR_SERVERS` is as the signal INT, `WAIT_FOR_CLIENTS` as TERM; see \
         [Signals](operating.md#signals).",
        [];
    CreateCache "CREATE CACHE" as "CREATE CACHE [name] [IN DATABASE db] \
        [WITH (freshness = session|strict|bounded, max_lag = '5s')] FROM select":
        "Names a statement whose results are cached in mode manual.",
        "Constants in it stand for all others: `where id = 5` and `where id = $1` are one statement, \
         and so are texts that differ in case and blanks. Without a name it is called by what it \
         asks, such as `q_5d41402abc4b2a76`. It lives until the process ends. A WARNING says if \
         changes of one of its tables are not followed, or if the mode does not let it answer. See \
         [The read cache](cache.md#commands).",
        ["0A000": "its results can't be cached; the detail says why",
         "3D000": "there is no such database",
         "42601": "on the console: no database is named",
         "42710": "the name is another statement's, or the statement has another name",
         "53400": "4,096 statements are named already",
         "08006": "the catalogues could not be asked"];
    ExplainCreateCache "EXPLAIN CREATE CACHE" as "EXPLAIN CREATE CACHE [IN DATABASE db] FROM select":
        "Tells whether a statement can be cached, and what its answer depends on, or why not.",
        "Nothing is created. [An example](cache.md#commands).",
        ["3D000": "there is no such database",
         "42601": "on the console: no database is named",
         "08006": "the catalogues could not be asked"];
    DropCache "DROP CACHE" as "DROP CACHE name [IN DATABASE db]":
        "Ends CREATE CACHE: the statement is no longer named.",
        "",
        ["3D000": "there is no such database",
         "42704": "there is no such cache, or one in each of several databases"];
    DropAllCaches "DROP ALL CACHES" as "DROP ALL CACHES [IN DATABASE db]":
        "The same of all: on the console of all databases, else of the connection's.",
        "A NOTICE says how many there were.",
        ["3D000": "there is no such database"];
    MirrorTable "MIRROR TABLE" as "MIRROR TABLE [schema.]table [COLUMNS (a, b)] [IN DATABASE db]":
        "Keeps a table, or some of its columns, in memory.",
        "Until DROP MIRROR, or until the process ends. See [Mirrors](cache.md#mirrors).",
        ["3D000": "there is no such database",
         "42601": "on the console: no database is named",
         "42P01": "there is no such table; other codes of PostgreSQL if it can't be mirrored",
         "53400": "1,024 tables are named already",
         "55000": "`cache.mirror_memory` is 0",
         "08006": "the catalogues could not be asked"];
    DropMirror "DROP MIRROR" as "DROP MIRROR [schema.]table [IN DATABASE db]":
        "Ends MIRROR TABLE.",
        "Of a table that the configuration names: until RELOAD.",
        ["3D000": "there is no such database",
         "42704": "nobody has asked for it, or there is one in each of several databases"];
    SetProcedure "SET PROCEDURE" as "SET PROCEDURE [schema.]name [KEY (a, ...)] [ALSO (b, ...)] \
        [MODE off|lane|train|batch] [DURABLE_ACK tail|each] [MAX_TRAIN n] [RETRY n]":
        "Says how calls of a procedure travel, in force for the next call.",
        "For all databases, until the process ends. What is not said stays as it was. A name without \
         schema is in `public`. A WARNING says if the procedure has no such parameter, or if its \
         pools let nothing ride. See [Procedure calls](procedures.md).",
        ["53400": "4,096 procedures are named already"];
    ResetProcedure "RESET PROCEDURE" as "RESET PROCEDURE [schema.]name":
        "Forgets what SET PROCEDURE said.",
        "",
        ["42704": "it has said nothing"];
    ExplainProcedure "EXPLAIN PROCEDURE" as "EXPLAIN PROCEDURE [schema.]name [IN DATABASE db]":
        "Tells what is known of a procedure, how its calls travel, and why.",
        "[What the lines say](procedures.md#commands).",
        ["3D000": "there is no such database",
         "42601": "several databases have one of this name, and none is named",
         "42883": "there is no such procedure or function",
         "08006": "the catalogues could not be asked, and nothing was known of it"];
}

impl Verb {
    /// By its words, in any case.
    pub fn find(words: &str) -> Option<Verb> {
        Verb::ALL.iter().copied().find(|verb| verb.words().eq_ignore_ascii_case(words))
    }

    /// What the console can be asked to do begins with one of these, for hints.
    pub fn first_words() -> impl Iterator<Item = &'static str> {
        let first = |verb: &Verb| verb.words().split(' ').next().unwrap_or_default();
        ["SHOW", "SELECT"].into_iter().chain(Verb::ALL.iter().map(first))
    }
}
