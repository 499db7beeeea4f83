//! From the lines of an ini file to our options. What PgBouncer does where the file says nothing
//! is said, too, where our default is another.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::super::document::Sheet;
use super::super::nearest::nearest;
use super::super::options::{self, default, Section};
use super::super::report::{Code, Place, Problem};
use super::super::settings::{Entry, Layer, Scope, Setting};
use super::super::tls::TlsVersions;
use super::super::value::{escaped, quoted, Raw, Value};
use super::ini::{self, Item, Part, PROBLEMS_MAX};
use super::table::{self, Fate, Known, Turn, NO_OLD_TLS};

/// PgBouncer's, where `unix_socket_dir` is not said.
const SOCKET_DIRECTORY: &str = "/tmp";

const CLIENT_PROTOCOLS: [&str; 3] = ["client_tls_protocols", "min_version", "max_version"];
const SERVER_PROTOCOLS: [&str; 3] = ["server_tls_protocols", "tls_min_version", "tls_max_version"];
/// Of a Unix socket: unix(7), `sun_path` without its end.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// What PgBouncer does and has no option for.
const OURS: [(Section, &str, &str); 3] = [
    (Section::Listen, "http", "off"),
    (Section::Listen, "errors", "pgbouncer"),
    (Section::Telemetry, "log_format", "pgbouncer"),
];

#[derive(Default)]
pub(super) struct Converted {
    pub sheet: Sheet,
    /// What is not taken and what will be otherwise, with file and line.
    pub notes: Vec<Note>,
}

/// A difference.
pub(super) struct Note {
    place: Place,
    what: String,
}

impl Note {
    /// In the order of the file, which may include others; what the console says comes first.
    fn order(&self) -> Option<(Arc<str>, usize)> {
        match &self.place {
            Place::File { file, line, .. } => Some((file.clone(), *line)),
            _ => None,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File { file, line, .. } => write!(f, "{file}:{line}: {}", self.what),
            _ => f.write_str(&self.what),
        }
    }
}

/// A value and where it was said.
#[derive(Clone)]
struct Said {
    text: String,
    place: Place,
    layer: Layer,
}

impl Said {
    fn at(text: &str, place: &Place) -> Said {
        let layer = if *place == Place::Console { Layer::Console } else { Layer::File };
        Said { text: text.to_owned(), place: place.clone(), layer }
    }

    fn preset(text: &str) -> Said {
        Said { text: text.to_owned(), place: Place::PgbouncerDefault, layer: Layer::Implied }
    }
}

/// A line of `[databases]` or `[users]`, its pairs parsed and known.
struct Named {
    name: String,
    place: Place,
    pairs: BTreeMap<&'static str, Said>,
}

/// `users` stands for `auth_file`.
pub(super) fn convert(items: &[Item], users: Option<&Path>) -> Converted {
    let mut convert = Convert::default();
    convert.collect(items);
    if let Some(path) = users {
        let said = Said::at(&path.display().to_string(), &Place::CommandLine);
        convert.main.insert("auth_file", said);
    }
    convert.halves();
    convert.fixed();
    convert.listen();
    convert.client_ca();
    convert.protocols(&Scope::fixed(Section::ListenTls), CLIENT_PROTOCOLS);
    convert.server_check();
    convert.peering();
    convert.databases();
    convert.users();
    convert.auth();
    convert.cap_least_sizes();
    let Convert { mut out, .. } = convert;
    out.notes.sort_by_key(Note::order);
    out
}

/// One option of `[pgbouncer]` alone, where the configuration is no ini file.
pub(super) fn one(name: &str, value: &str) -> Converted {
    let mut convert = Convert::default();
    let said = Said::at(value, &Place::Console);
    let Some(known) = convert.known(table::MAIN, name, &said.place) else { return convert.out };
    match known.fate {
        Fate::Ignored => {
            let note = format!("`{name}` is ignored: {}", known.about);
            convert.note(&said.place, &note);
        }
        Fate::Taken(section, ..) if !section.has_name() => {
            convert.take(known, &Scope::fixed(section), &said);
        }
        Fate::Taken(section, ours, _) => {
            let place = section.written();
            let message = format!("`{name}` is `{ours}` of `[{place}]` here");
            convert.complain(Problem::new(Code::UnknownKey, message), &said.place);
        }
        Fate::Joined(ours) => {
            let message = format!("`{name}` is another option here: {ours}");
            convert.complain(Problem::new(Code::UnknownKey, message), &said.place);
        }
    }
    convert.out
}

#[derive(Default)]
struct Convert {
    main: BTreeMap<&'static str, Said>,
    databases: Vec<Named>,
    users: Vec<Named>,
    peers: Vec<Named>,
    out: Converted,
}

impl Convert {
    /// Sorts the lines by section; unknown names are problems.
    fn collect(&mut self, items: &[Item]) {
        for item in items {
            match item.part {
                Part::Main => {
                    if let Some(known) = self.known(table::MAIN, &item.key, &item.place) {
                        self.main.insert(known.name, Said::at(&item.value, &item.place));
                    }
                }
                Part::Databases => {
                    if let Some(named) = self.named(table::DATABASES, item) {
                        self.databases.push(named);
                    }
                }
                Part::Users => {
                    if let Some(named) = self.named(table::USERS, item) {
                        self.users.push(named);
                    }
                }
                Part::Peers => self.peer(item),
            }
        }
    }

    fn peer(&mut self, item: &Item) {
        if !item.key.parse::<u16>().is_ok_and(|id| id > 0) {
            let message = format!("{} is no peer; expected a number from 1", quoted(&item.key));
            self.complain(Problem::new(Code::BadName, message), &item.place);
        }
        let Some(peer) = self.named(table::PEERS, item) else { return };
        if !peer.pairs.contains_key("host") {
            let message = format!("peer {} has no `host`", escaped(&item.key));
            self.complain(Problem::new(Code::MissingValue, message), &item.place);
        }
        self.peers.push(peer);
    }

    /// Where the others are who may know the key of a cancel request.
    fn peering(&mut self) {
        let peers = std::mem::take(&mut self.peers);
        let Some(first) = peers.first() else { return };
        let own = self.text("peer_id", "0");
        if own.parse::<u16>().is_err() {
            let Some(said) = self.main.get("peer_id").cloned() else { return };
            let message = format!("`peer_id` is {}; expected a number", quoted(&own));
            return self.complain(Problem::new(Code::BadValue, message), &said.place);
        }
        if own == "0" {
            return self.note(&first.place, "`[peers]` is ignored: it needs `peer_id`");
        }
        let address = |peer: &Named| {
            let said = |name: &str| peer.pairs.get(name).map(|said| said.text.as_str());
            let (host, port) = (said("host")?, said("port").unwrap_or("6432"));
            Some(match host.starts_with('/') {
                true => format!("unix:{host}/.s.PGSQL.{port}"),
                false => format!("{host}:{port}"),
            })
        };
        let others = peers.iter().filter(|peer| peer.name != own).filter_map(address);
        let list = others.collect::<Vec<_>>().join(",");
        let said = Said::at("", &first.place);
        let scope = Scope::fixed(Section::Runtime);
        self.take_text(&scope, ("peers", "peers"), &Raw::Bare(&list), &said);
        for peer in &peers {
            if let (Some(said), Some(known)) =
                (peer.pairs.get("pool_size"), table::find(table::PEERS, "pool_size"))
            {
                self.note(&said.place, &format!("`pool_size` is ignored: {}", known.about));
            }
        }
    }

    fn named(&mut self, table: &'static [Known], item: &Item) -> Option<Named> {
        let pairs = match ini::pairs(&item.value) {
            Ok(pairs) => pairs,
            Err(why) => {
                let message = format!("{}: {why}", quoted(&item.key));
                self.complain(Problem::new(Code::Syntax, message), &item.place);
                return None;
            }
        };
        let mut known_pairs = BTreeMap::new();
        for (key, value) in pairs {
            if let Some(known) = self.known(table, &key, &item.place) {
                known_pairs.insert(known.name, Said::at(&value, &item.place));
            }
        }
        Some(Named { name: item.key.clone(), place: item.place.clone(), pairs: known_pairs })
    }

    fn known(
        &mut self,
        table: &'static [Known],
        name: &str,
        place: &Place,
    ) -> Option<&'static Known> {
        let known = table::find(table, name);
        if known.is_none() {
            let message = format!("PgBouncer has no option `{}` here", escaped(name));
            let problem = Problem::new(Code::UnknownKey, message);
            let names = table.iter().map(|known| known.name);
            let problem = match nearest(name, names) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.note("the options of PgBouncer 1.25 are known"),
            };
            self.complain(problem, place);
        }
        known
    }

    /// Options that stand for the whole process and need no other.
    fn fixed(&mut self) {
        for known in table::MAIN {
            let given = self.main.get(known.name).cloned();
            let said = given.clone().or_else(|| known.preset.map(Said::preset));
            match (known.fate, said) {
                (Fate::Ignored, Some(said)) => {
                    let note = format!("`{}` is ignored: {}", known.name, known.about);
                    self.note(&said.place, &note);
                }
                (Fate::Taken(Section::Database | Section::User, ..), _) => {}
                (Fate::Taken(section, ..), Some(said)) => {
                    self.take(known, &Scope::fixed(section), &said);
                }
                _ => {}
            }
        }
        for (section, name, value) in OURS {
            let (scope, said) = (Scope::fixed(section), Said::preset(value));
            self.take_text(&scope, (name, name), &Raw::Bare(value), &said);
        }
        // With `any` everybody comes in; with all other methods only who is known.
        if self.text("auth_type", "md5") != "any" {
            let said = Said::preset("true");
            let scope = Scope::fixed(Section::Auth);
            self.take_text(&scope, ("known_only", "known_only"), &Raw::Bare("true"), &said);
        }
    }

    /// Where PostgreSQL clients come in.
    fn listen(&mut self) {
        let port = self.text("listen_port", "6432");
        let mut addresses = Vec::new();
        for address in self.text("listen_addr", "").split(',').map(str::trim) {
            match address {
                "" => {}
                "*" => {
                    addresses.push(format!("0.0.0.0:{port}"));
                    if Path::new("/proc/net/if_inet6").exists() {
                        addresses.push(format!("[::]:{port}"));
                    }
                }
                _ if address.contains(':') => addresses.push(format!("[{address}]:{port}")),
                _ => addresses.push(format!("{address}:{port}")),
            }
        }
        let directory = self.text("unix_socket_dir", SOCKET_DIRECTORY);
        if directory.starts_with('@') {
            self.note_main("unix_socket_dir", "is ignored: abstract sockets are missing");
        } else if !directory.is_empty() {
            let directory = absolute(&directory);
            addresses.push(format!("unix:{directory}/.s.PGSQL.{port}"));
            self.control_socket(&format!("{directory}/.s.PONDAGE.{port}"));
        }
        let names = ["listen_addr", "listen_port", "unix_socket_dir"];
        let said = names.iter().find_map(|name| self.main.get(name).cloned());
        let said = said.unwrap_or_else(|| Said::preset(""));
        let list = Raw::List(addresses.iter().map(|address| Raw::Text(address)).collect());
        let scope = Scope::fixed(Section::Listen);
        self.take_text(&scope, ("postgres", "listen_addr"), &list, &said);
    }

    /// PgBouncer's `-R` finds the process that runs by its Unix socket; ours has one for that.
    fn control_socket(&mut self, path: &str) {
        if path.len() <= SOCKET_PATH_BYTES_MAX {
            let names = ("control_socket", "unix_socket_dir");
            let said = Said::preset("");
            self.take_text(&Scope::fixed(Section::Runtime), names, &Raw::Bare(path), &said);
        }
    }

    /// A certificate and its key, which PgBouncer lets stand alone, and SET on its console has to.
    fn halves(&mut self) {
        for (one, other) in [
            ("client_tls_cert_file", "client_tls_key_file"),
            ("server_tls_cert_file", "server_tls_key_file"),
        ] {
            let has = |convert: &Convert, name: &str| !convert.text(name, "").is_empty();
            let alone = match (has(self, one), has(self, other)) {
                (true, false) => (one, other),
                (false, true) => (other, one),
                _ => continue,
            };
            self.note_main(alone.0, &format!("is ignored: it needs `{}`", alone.1));
            self.main.remove(alone.0);
        }
    }

    /// PgBouncer lets it stand where no certificate is asked for.
    fn client_ca(&mut self) {
        let Some(said) = self.main.get("client_tls_ca_file").cloned() else { return };
        if said.text.is_empty() {
            return;
        }
        let mode = self.text("client_tls_sslmode", "disable");
        let asked = matches!(self.text("auth_type", "md5").as_str(), "hba" | "cert");
        if !mode.starts_with("verify") && (mode == "disable" || !asked) {
            return self.note_main(
                "client_tls_ca_file",
                "is ignored: `client_tls_sslmode` asks for no certificates",
            );
        }
        let scope = Scope::fixed(Section::ListenTls);
        let path = absolute(&said.text);
        self.take_text(&scope, ("client_ca", "client_tls_ca_file"), &Raw::Bare(&path), &said);
    }

    /// Lists of TLS versions. `names`: theirs, our least, our greatest.
    fn protocols(&mut self, scope: &Scope, names: [&'static str; 3]) {
        let [theirs, least, most] = names;
        let said = self.main.get(theirs).cloned().filter(|said| !said.text.is_empty());
        let Some(said) = said else { return };
        let Some((versions, old)) = TlsVersions::of_protocols(&said.text) else {
            let message = format!(
                "`{theirs}` is {}; expected secure, all, or a list of tlsv1.2 and tlsv1.3",
                quoted(&said.text)
            );
            return self.complain_once(Problem::new(Code::BadValue, message), &said.place);
        };
        let (Some(first), Some(last)) = (versions.first(), versions.last()) else {
            let message = format!("`{theirs}` is {}: {NO_OLD_TLS}", quoted(&said.text));
            return self.complain_once(Problem::new(Code::OldTls, message), &said.place);
        };
        self.take_text(scope, (least, theirs), &Raw::Bare(first.name()), &said);
        self.take_text(scope, (most, theirs), &Raw::Bare(last.name()), &said);
        let note = format!("`{theirs}` is taken, but {NO_OLD_TLS}");
        if old && !self.out.notes.iter().any(|known| known.what == note) {
            self.note(&said.place, &note);
        }
    }

    fn server_check(&mut self) {
        let Some(said) = self.main.get("server_check_query").cloned() else { return };
        let scope = Scope::fixed(Section::Pool);
        match said.text.as_str() {
            // An earlier delay goes: the last value counts.
            "" => {
                let ours = ("server_check_delay", "server_check_query");
                self.take_text(&scope, ours, &Raw::Bare("0"), &said);
            }
            query => {
                let query = if query == "<empty>" { "" } else { query };
                let ours = ("server_check_query", "server_check_query");
                self.take_text(&scope, ours, &Raw::Bare(query), &said);
            }
        }
    }

    fn databases(&mut self) {
        let databases = std::mem::take(&mut self.databases);
        for database in &databases {
            let scope = Scope::database(&database.name);
            self.out.sheet.scopes.push((scope.clone(), database.place.clone(), None));
            self.host(&scope, database);
            self.section(&scope, database, table::DATABASES);
            self.protocols(&scope, SERVER_PROTOCOLS);
            let ours = ["auth_query", "auth_query_database", "auth_query_user"];
            let user = says(&self.main, "auth_user");
            self.look_ups(&scope, &database.pairs, ours, user);
        }
        let mut hosts = databases.iter().filter_map(|database| database.pairs.get("host"));
        if let Some(host) = hosts.find(|host| host.text == "localhost") {
            let note = "host `localhost` means the server's Unix socket when there is one";
            self.note(&host.place, note);
        }
        self.databases = databases;
    }

    fn host(&mut self, scope: &Scope, database: &Named) {
        let (said, host) = match database.pairs.get("host") {
            Some(said) => (said.clone(), said.text.clone()),
            None => {
                let directory = self.text("unix_socket_dir", SOCKET_DIRECTORY);
                let host = match directory.starts_with('@') || directory.is_empty() {
                    true => default::SERVER_HOST.to_owned(),
                    false => absolute(&directory),
                };
                (Said::preset(""), host)
            }
        };
        if host.starts_with('@') {
            let message = "abstract Unix sockets are missing";
            return self.complain(Problem::new(Code::BadValue, message), &said.place);
        }
        if host.contains(',') && !database.pairs.contains_key("load_balance_hosts") {
            let names = ("load_balance_hosts", "load_balance_hosts");
            self.take_text(scope, names, &Raw::Bare("round-robin"), &said);
        }
        self.take_text(scope, ("host", "host"), &Raw::Bare(&host), &said);
    }

    fn users(&mut self) {
        let users = std::mem::take(&mut self.users);
        for user in &users {
            let scope = Scope::user(&user.name);
            self.out.sheet.scopes.push((scope.clone(), user.place.clone(), None));
            self.section(&scope, user, table::USERS);
        }
        self.users = users;
    }

    /// What a line of `[databases]` or `[users]` says, and what `[pgbouncer]` says for all.
    fn section(&mut self, scope: &Scope, named: &Named, table: &'static [Known]) {
        for (name, said) in &named.pairs {
            let Some(known) = table::find(table, name) else { continue };
            match known.fate {
                Fate::Taken(..) => self.take(known, scope, said),
                Fate::Ignored => {
                    let note = format!("`{name}` is ignored: {}", known.about);
                    self.note(&said.place, &note);
                }
                Fate::Joined(_) => {}
            }
        }
        for known in table::MAIN {
            let for_all =
                matches!(known.fate, Fate::Taken(section, ..) if section == scope.section);
            let Some(said) = self.main.get(known.name).cloned().filter(|_| for_all) else {
                continue;
            };
            if !named.pairs.contains_key(known.name) {
                self.take(known, scope, &said);
            }
        }
    }

    /// The users file, the rules, and the query for users where databases have none of their own.
    fn auth(&mut self) {
        let scope = Scope::fixed(Section::Auth);
        if let Some(said) = self.main.get("auth_file").cloned().filter(|s| !s.text.is_empty()) {
            let path = absolute(&said.text);
            self.take_text(&scope, ("users_file", "auth_file"), &Raw::Bare(&path), &said);
        }
        let by_rules = self.main.get("auth_type").is_some_and(|said| said.text == "hba");
        for (ours, theirs) in [("hba_file", "auth_hba_file"), ("ident_file", "auth_ident_file")] {
            let said = self.main.get(theirs).cloned().filter(|said| !said.text.is_empty());
            let Some(said) = said else { continue };
            if by_rules {
                let path = absolute(&said.text);
                self.take_text(&scope, (ours, theirs), &Raw::Bare(&path), &said);
            } else {
                let note = format!("`{theirs}` is ignored: it needs `auth_type = hba`");
                self.note(&said.place, &note);
            }
        }
        let somewhere = self.databases.iter().any(|database| says(&database.pairs, "auth_user"));
        let pairs = self.main.clone();
        self.look_ups(&scope, &pairs, ["query", "query_database", "query_user"], somewhere);
    }

    /// The query for users of a section, by our names there; `user`: another says who runs it.
    fn look_ups(
        &mut self,
        scope: &Scope,
        pairs: &BTreeMap<&'static str, Said>,
        ours: [&'static str; 3],
        user: bool,
    ) {
        let user = user || says(pairs, "auth_user");
        for (ours, theirs) in ours.into_iter().zip(["auth_query", "auth_dbname", "auth_user"]) {
            let said = pairs.get(theirs).filter(|said| !said.text.is_empty());
            match (said, user) {
                (None, _) => {}
                (Some(said), true) => {
                    self.take_text(scope, (ours, theirs), &Raw::Bare(&said.text), said);
                }
                (Some(said), false) => {
                    let note = format!("`{theirs}` is ignored: it needs `auth_user`");
                    self.note(&said.place, &note);
                }
            }
        }
    }

    /// PgBouncer takes `min_pool_size` for no more than the pool's size.
    fn cap_least_sizes(&mut self) {
        let pool = Scope::fixed(Section::Pool);
        let named = self.out.sheet.scopes.iter().map(|(scope, ..)| scope.clone());
        let scopes: Vec<Scope> = std::iter::once(pool.clone()).chain(named).collect();
        let mut said: HashMap<(&Scope, &str), (u32, &Setting)> = HashMap::new();
        for entry in &self.out.sheet.entries {
            if let Value::Count(count) = entry.setting.value {
                said.insert((&entry.scope, entry.row.name), (count, &entry.setting));
            }
        }
        let nearest = |scope, name| said.get(&(scope, name)).or_else(|| said.get(&(&pool, name)));
        let mut capped = Vec::new();
        for scope in &scopes {
            let size = nearest(scope, "pool_size").map_or(default::POOL_SIZE, |(size, _)| *size);
            // Where the size is its own, what all inherit may have been capped at another.
            let own =
                scope.section == Section::Database && said.contains_key(&(scope, "pool_size"));
            let least = nearest(scope, "min_pool_size").filter(|(least, _)| own || *least > size);
            let Some(((least, setting), row)) =
                least.zip(options::find(scope.section, "min_pool_size"))
            else {
                continue;
            };
            let setting = Setting { value: Value::Count(size.min(*least)), ..(*setting).clone() };
            capped.push(Entry { scope: scope.clone(), row, setting });
        }
        self.out.sheet.entries.extend(capped);
    }

    fn text(&self, name: &str, preset: &str) -> String {
        self.main.get(name).map_or_else(|| preset.to_owned(), |said| said.text.clone())
    }

    /// One option for one of ours.
    fn take(&mut self, known: &'static Known, scope: &Scope, said: &Said) {
        let Fate::Taken(_, ours, turn) = known.fate else { return };
        match turned(known.name, turn, &said.text, scope.section) {
            Ok(None) => {}
            Ok(Some(text)) => self.take_text(scope, (ours, known.name), &Raw::Bare(&text), said),
            Err(problem) => self.complain(problem, &said.place),
        }
    }

    /// `names`: ours, and theirs for messages.
    fn take_text(&mut self, scope: &Scope, names: (&str, &str), raw: &Raw<'_>, said: &Said) {
        let Some(row) = options::find(scope.section, names.0) else { return };
        match row.kind.read(names.1, raw, None) {
            Ok(value) => {
                let place = said.place.clone();
                let setting = Setting { value, layer: said.layer, place, span: None };
                self.out.sheet.entries.push(Entry { scope: scope.clone(), row, setting });
            }
            Err(problem) => {
                self.out.sheet.broken.push((scope.clone(), row.name));
                self.complain(problem, &said.place);
            }
        }
    }

    fn complain(&mut self, problem: Problem, place: &Place) {
        if self.out.sheet.problems.len() < PROBLEMS_MAX {
            self.out.sheet.problems.push(problem.at(place.clone()));
        }
    }

    /// Of an option that is looked at for each database.
    fn complain_once(&mut self, problem: Problem, place: &Place) {
        let problem = problem.at(place.clone());
        if !self.out.sheet.problems.contains(&problem) {
            self.out.sheet.problems.push(problem);
        }
    }

    fn note_main(&mut self, name: &str, what: &str) {
        if let Some(said) = self.main.get(name).cloned() {
            self.note(&said.place, &format!("`{name}` {what}"));
        }
    }

    fn note(&mut self, place: &Place, what: &str) {
        // Only what somebody says is noted.
        if matches!(place, Place::File { .. } | Place::Console) {
            self.out.notes.push(Note { place: place.clone(), what: what.to_owned() });
        }
    }
}

fn says(pairs: &BTreeMap<&'static str, Said>, name: &str) -> bool {
    pairs.get(name).is_some_and(|said| !said.text.is_empty())
}

/// The value in our words; none: it says nothing.
fn turned(name: &str, turn: Turn, text: &str, section: Section) -> Result<Option<String>, Problem> {
    let unfit = |expected: &str| {
        let message = format!("`{name}` is {}; expected {expected}", quoted(text));
        Problem::new(Code::BadValue, message)
    };
    // In the strings of databases and users, -1 is as good as nothing.
    let named = matches!(section, Section::Database | Section::User);
    let nothing = text.is_empty() || (named && text.starts_with('-'));
    match turn {
        Turn::Same if text.is_empty() && name != "server_reset_query" => Ok(None),
        Turn::Same => Ok(Some(text.to_owned())),
        Turn::Path if text.is_empty() => Ok(None),
        Turn::Path => Ok(Some(absolute(text))),
        Turn::Count if nothing && named => Ok(None),
        Turn::Count => Ok(Some(text.to_owned())),
        Turn::Seconds | Turn::SecondsOrAtOnce if nothing && named => Ok(None),
        Turn::Seconds | Turn::SecondsOrAtOnce => {
            let seconds = text.parse::<f64>().ok().filter(|s| s.is_finite() && *s >= 0.0);
            let expected = "a number of seconds such as 15 or 0.5";
            let seconds = seconds.ok_or_else(|| unfit(expected))?;
            // What is not quite nothing stays so. The reader of durations has a ceiling.
            let least = u64::from(seconds > 0.0 || matches!(turn, Turn::SecondsOrAtOnce));
            let milliseconds = ((seconds * 1000.0).round() as u64).max(least);
            Ok(Some(format!("{milliseconds}ms")))
        }
        Turn::Flag => {
            let number = text.parse::<i64>().map_err(|_| unfit("0 or 1"))?;
            Ok(Some((number != 0).to_string()))
        }
        Turn::Words(words) => match words.iter().find(|(theirs, _)| *theirs == text) {
            Some((_, ours)) => Ok(Some((*ours).to_owned())),
            None => {
                let known: Vec<&str> = words.iter().map(|(theirs, _)| *theirs).collect();
                let problem = unfit(&format!("one of {}", known.join(", ")));
                Err(match matches!(text, "pam" | "ldap") {
                    true => problem.note("PgBouncer has it, Pondage does not"),
                    false => problem,
                })
            }
        },
    }
}

/// Relative files start at the directory the process runs in.
fn absolute(path: &str) -> String {
    match std::path::absolute(path) {
        Ok(path) => path.display().to_string(),
        Err(_) => path.to_owned(),
    }
}
