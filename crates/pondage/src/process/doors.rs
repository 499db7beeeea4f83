//! The sockets the process listens on, and its pid file: made at start, removed at the end.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{chown, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::unistd::Group;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::held::{self, Held, Usage};
use crate::config::{Address, Listen};
use crate::link::Door;
use crate::worker::Listener;

/// Permissions of the control socket: its owner's.
const CONTROL_MODE: u32 = 0o600;

/// Processes that may stand at it.
const CONTROL_BACKLOG: u32 = 8;

/// A socket or file that can't be had.
#[derive(Debug)]
pub struct DoorError {
    /// `P0211` and on.
    pub code: &'static str,
    what: String,
    why: String,
    help: String,
}

impl fmt::Display for DoorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DoorError { code, what, why, help } = self;
        writeln!(f, "error[{code}]: cannot {what}: {why}")?;
        write!(f, "   = help: {help}")
    }
}

impl std::error::Error for DoorError {}

impl DoorError {
    pub fn new(
        code: &'static str,
        what: impl Into<String>,
        why: impl fmt::Display,
        help: impl Into<String>,
    ) -> DoorError {
        DoorError { code, what: what.into(), why: why.to_string(), help: help.into() }
    }
}

/// A file that goes when this does, if it is ours.
#[derive(Debug)]
pub struct Removed {
    path: PathBuf,
    ours: bool,
}

impl Removed {
    /// The file was another process's, or is ours again.
    pub fn take(&mut self) {
        self.ours = true;
    }

    /// The file is another process's now.
    pub fn leave(mut self) {
        self.ours = false;
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        if self.ours {
            // It may be gone already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The bound doors.
#[derive(Debug, Default)]
pub struct Doors {
    pub listeners: Vec<(Door, Listener)>,
    /// Those for PostgreSQL clients as they turned out: port 0 has become a port.
    pub addresses: Vec<String>,
    /// Those for clients of proxies.
    pub proxied: Vec<String>,
    /// And those for Redis clients.
    pub redis: Vec<String>,
    pub http: Option<TcpListener>,
    pub control: Option<UnixListener>,
    /// The files of Unix sockets. Those that were handed over have to be taken first.
    pub files: Vec<Removed>,
    /// So have those of doors that are none of ours.
    pub surplus: Vec<Removed>,
    /// Copies of all of them, for a process that takes over.
    pub held: Vec<Held>,
}

impl Doors {
    /// Binds every address that was not handed to this process. Sockets that the service manager
    /// has made stand for all addresses of their kind.
    ///
    /// # Errors
    /// The first that can't be had; those before it are let go.
    pub fn open(
        listen: &Listen,
        control: Option<&Path>,
        mut handed: Vec<Held>,
    ) -> Result<Doors, DoorError> {
        let mut doors = Doors::default();
        let (activated, mut before) = handed.drain(..).partition::<Vec<_>, _>(|one| one.activated);
        let by_address = |usage| activated.iter().all(|one: &Held| one.usage != usage);
        if by_address(Usage::Postgres) {
            for address in &listen.postgres {
                match address {
                    Address::Tcp(address) => {
                        doors.tcp(Usage::Postgres, *address, listen, &mut before)?;
                    }
                    Address::Unix { directory, port } => {
                        let path = crate::control::dial::socket_path(directory, *port);
                        let (mode, group) = (listen.unix_socket_mode, group_of(listen, &path)?);
                        let bound = || bind_unix(&path, mode, group, listen.backlog);
                        doors.unix(Usage::Postgres, &path, *port, bound, &mut before)?;
                    }
                }
            }
        }
        if by_address(Usage::Proxied) {
            for address in &listen.proxied {
                doors.tcp(Usage::Proxied, *address, listen, &mut before)?;
            }
        }
        if by_address(Usage::Redis) {
            for address in &listen.redis {
                doors.tcp(Usage::Redis, *address, listen, &mut before)?;
            }
        }
        if let Some(address) = listen.http.filter(|_| by_address(Usage::Http)) {
            doors.tcp(Usage::Http, address, listen, &mut before)?;
        }
        if let Some(path) = control {
            let bound = || bind_unix(path, CONTROL_MODE, None, CONTROL_BACKLOG);
            doors.unix(Usage::Control, path, 0, bound, &mut before)?;
        }
        for one in activated {
            doors.add(one)?;
        }
        let surplus = before.iter().filter(|one| one.unix_port.is_some());
        let surplus = surplus.map(|one| Removed { path: one.name.clone().into(), ours: false });
        doors.surplus = surplus.collect();
        Ok(doors)
    }

    fn tcp(
        &mut self,
        usage: Usage,
        address: SocketAddr,
        listen: &Listen,
        before: &mut Vec<Held>,
    ) -> Result<(), DoorError> {
        let name = address.to_string();
        let one = match held::take(before, usage, &name) {
            Some(one) => one,
            None => {
                let fd = bind_tcp(address, listen.backlog, listen.reuse_port)?.into();
                Held { usage, name, activated: false, unix_port: None, fd }
            }
        };
        self.add(one)
    }

    fn unix(
        &mut self,
        usage: Usage,
        path: &Path,
        port: u16,
        bound: impl FnOnce() -> io::Result<UnixListener>,
        before: &mut Vec<Held>,
    ) -> Result<(), DoorError> {
        let name = path.display().to_string();
        let handed = held::take(before, usage, &name);
        let ours = handed.is_none();
        let one = match handed {
            Some(one) => one,
            None => {
                let fd = bound().map_err(|error| unix_error(path, &error))?.into();
                Held { usage, name, activated: false, unix_port: Some(port), fd }
            }
        };
        self.files.push(Removed { path: path.to_owned(), ours });
        self.add(one)
    }

    fn add(&mut self, one: Held) -> Result<(), DoorError> {
        let unusable = |error: io::Error| {
            let what = format!("listen on {}", one.name);
            DoorError::new("P0213", what, error, "restart pondage")
        };
        let listener = one.listener().map_err(unusable)?;
        let address = match &listener {
            Listener::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| one.name.clone(), |local| local.to_string())
            }
            Listener::Unix { .. } => format!("unix:{}", one.name),
        };
        match (one.usage, listener) {
            (Usage::Postgres, listener) => {
                self.addresses.push(address);
                self.listeners.push((Door::Postgres, listener));
            }
            (Usage::Proxied, listener) => {
                self.proxied.push(address);
                self.listeners.push((Door::Proxied, listener));
            }
            (Usage::Redis, listener) => {
                self.redis.push(address);
                self.listeners.push((Door::Redis, listener));
            }
            (Usage::Http, Listener::Tcp(listener)) => self.http = Some(listener),
            (Usage::Control, Listener::Unix { listener, .. }) => self.control = Some(listener),
            (Usage::Http | Usage::Control | Usage::Before, _) => {}
        }
        self.held.push(one);
        Ok(())
    }
}

/// Binds a non-blocking TCP listener.
///
/// # Errors
/// P0211 when the address is in use, P0212 when it isn't allowed, P0213 for the rest.
pub fn bind_tcp(address: SocketAddr, backlog: u32, shared: bool) -> Result<TcpListener, DoorError> {
    let bound = || -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(shared)?;
        if address.is_ipv6() {
            // So that 0.0.0.0 and [::] can be listed beside one another, as with PostgreSQL.
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        socket.set_nonblocking(true)?;
        Ok(socket.into())
    };
    bound().map_err(|error| {
        let port = address.port();
        let help = match error.kind() {
            io::ErrorKind::AddrInUse => format!(
                "another process listens there (`ss -ltnp 'sport = :{port}'` shows it); stop it, \
                 or choose another address with --listen or --http"
            ),
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 are root's: choose a higher one, or grant CAP_NET_BIND_SERVICE"
                    .to_owned()
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine has no such address (`ip address` shows what it has)".to_owned()
            }
            _ => "choose another address with --listen or --http".to_owned(),
        };
        DoorError {
            code: code_of(&error),
            what: format!("listen on {address}"),
            why: error.to_string(),
            help,
        }
    })
}

fn code_of(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "P0211",
        io::ErrorKind::PermissionDenied => "P0212",
        _ => "P0213",
    }
}

fn bind_unix(path: &Path, mode: u32, group: Option<u32>, backlog: u32) -> io::Result<UnixListener> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Before it listens: nobody gets in by wider permissions.
    let narrowed = group
        .map_or(Ok(()), |group| chown(path, None, Some(group)))
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .and_then(|()| socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX)))
        .and_then(|()| socket.set_nonblocking(true));
    if let Err(error) = narrowed {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(socket.into())
}

/// The number of the group that Unix sockets are to have.
fn group_of(listen: &Listen, path: &Path) -> Result<Option<u32>, DoorError> {
    let Some(name) = &listen.unix_socket_group else { return Ok(None) };
    let found = match name.parse() {
        Ok(number) => Some(number),
        Err(_) => Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw()),
    };
    match found {
        Some(number) => Ok(Some(number)),
        None => {
            let what = format!("listen on {}", path.display());
            let why = format!("there is no group \"{}\"", name.escape_debug());
            Err(DoorError::new("P0213", what, why, "see listen.unix_socket_group"))
        }
    }
}

/// Removes the socket of a process that is gone; one that answers is in use.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "a file that is no socket is there"));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

fn unix_error(path: &Path, error: &io::Error) -> DoorError {
    let directory = path.parent().unwrap_or(path).display();
    let help = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process serves it; stop it, or choose another directory or port".to_owned()
        }
        io::ErrorKind::NotFound => format!("make the directory {directory}"),
        io::ErrorKind::PermissionDenied => {
            format!("let the user that runs pondage write to {directory}")
        }
        _ => "choose another directory (a path has at most 107 bytes)".to_owned(),
    };
    let what = format!("listen on {}", path.display());
    DoorError { code: code_of(error), what, why: error.to_string(), help }
}

/// Writes this process's id to `path`; in place of that of `before`, the process that this one
/// takes over from.
///
/// # Errors
/// P0214 when another process that runs has written it, P0215 when it can't be written.
pub fn write_pid_file(path: &Path, before: Option<u32>) -> Result<Removed, DoorError> {
    let what = format!("write the pid file {}", path.display());
    let running = fs::read_to_string(path)
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
        .filter(|pid| *pid != std::process::id() && Some(*pid) != before)
        .filter(|pid| Path::new(&format!("/proc/{pid}")).exists());
    if let Some(pid) = running {
        return Err(DoorError {
            code: "P0214",
            what,
            why: format!("process {pid} wrote it and still runs"),
            help: "stop that process, or give this one a pid file of its own".to_owned(),
        });
    }
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(path)
        .and_then(|mut file| writeln!(file, "{}", std::process::id()))
        .map(|()| Removed { path: path.to_owned(), ours: true })
        .map_err(|error| DoorError {
            code: "P0215",
            what,
            why: error.to_string(),
            help: "let the user that runs pondage write there, or change runtime.pid_file"
                .to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Directory(PathBuf);

    impl Directory {
        fn make(name: &str) -> Directory {
            let id = std::process::id();
            let path = std::env::temp_dir().join(format!("pondage-doors-{name}-{id}"));
            fs::create_dir_all(&path).expect("directory");
            Directory(path)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn listen(addresses: Vec<Address>) -> Listen {
        let mut config = crate::config::Config::from_text("[databases.app]\n").expect("config");
        config.listen.postgres = addresses;
        config.listen.unix_socket_mode = 0o700;
        config.listen.http = None;
        config.listen
    }

    fn opened(addresses: Vec<Address>) -> Result<Doors, DoorError> {
        Doors::open(&listen(addresses), None, Vec::new())
    }

    #[test]
    fn a_door_that_was_handed_over_is_taken_and_one_that_is_not_wanted_goes_with_its_file() {
        let directory = Directory::make("handed");
        let any = "127.0.0.1:0".parse().expect("an address");
        let first = Address::Unix { directory: directory.0.clone(), port: 6432 };
        let other = Address::Unix { directory: directory.0.clone(), port: 6433 };
        let old = opened(vec![first.clone(), other, Address::Tcp(any)]).expect("bound");
        let copies = old.held.iter().map(|one| one.copy().expect("a copy")).collect();
        old.files.into_iter().for_each(Removed::leave);
        let listen = listen(vec![Address::Tcp(any), first]);
        drop(Doors::open(&listen, None, Vec::new()).expect_err("in use"));
        let mut new = Doors::open(&listen, None, copies).expect("taken");
        assert!(directory.0.join(".s.PGSQL.6433").exists());
        new.surplus.iter_mut().for_each(Removed::take);
        new.surplus.clear();
        assert_eq!(new.addresses, [old.addresses[2].clone(), old.addresses[0].clone()]);
        assert!(directory.0.join(".s.PGSQL.6432").exists());
        assert!(!directory.0.join(".s.PGSQL.6433").exists());
    }

    #[test]
    fn doors_for_clients_of_proxies_stay_such_when_they_are_handed_over() {
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let listen = Listen { proxied: vec![any], ..listen(vec![Address::Tcp(any)]) };
        let old = Doors::open(&listen, None, Vec::new()).expect("bound");
        let described = |one: &Held| (one.describe(), one.copy().expect("a copy").fd);
        let handed = old.held.iter().map(described);
        let handed = handed.map(|(what, fd)| Held::from_description(&what, fd).expect("known"));
        let new = Doors::open(&listen, None, handed.collect()).expect("taken");
        assert_eq!((&new.addresses, &new.proxied), (&old.addresses, &old.proxied));
        let kinds: Vec<Door> = new.listeners.iter().map(|(door, _)| *door).collect();
        assert_eq!(kinds, [Door::Postgres, Door::Proxied]);
    }

    #[test]
    fn the_service_managers_sockets_stand_for_the_addresses_of_their_kind() {
        let bound = TcpListener::bind("127.0.0.1:0").expect("bind");
        let local = bound.local_addr().expect("address").to_string();
        let name = "systemd".to_owned();
        let usage = Usage::Postgres;
        let one = Held { usage, name, activated: true, unix_port: None, fd: bound.into() };
        let taken = TcpListener::bind("127.0.0.1:0").expect("bind");
        let in_use = Address::Tcp(taken.local_addr().expect("address"));
        let doors = Doors::open(&listen(vec![in_use]), None, vec![one]).expect("taken");
        assert_eq!(doors.addresses, [local]);
    }

    #[test]
    fn an_address_in_use_is_named_with_its_code_and_what_to_do() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = taken.local_addr().expect("address");
        let error = opened(vec![Address::Tcp(address)]).expect_err("in use");
        let text = error.to_string();
        assert!(text.starts_with(&format!("error[P0211]: cannot listen on {address}: Address")));
        assert!(text.contains("= help: another process listens there"), "{text}");
    }

    #[test]
    fn the_socket_of_a_process_that_is_gone_is_replaced_and_removed_at_the_end() {
        let directory = Directory::make("stale");
        let path = directory.0.join(".s.PGSQL.6432");
        drop(UnixListener::bind(&path).expect("bind"));
        let address = Address::Unix { directory: directory.0.clone(), port: 6432 };
        let doors = opened(vec![address.clone()]).expect("bind");
        assert!(UnixStream::connect(&path).is_ok());
        let mode = fs::metadata(&path).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);

        let error = opened(vec![address]).expect_err("in use").to_string();
        assert!(error.starts_with("error[P0211]") && error.contains("another process"), "{error}");
        assert!(path.exists());
        drop(doors);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_in_place_of_the_socket_is_not_removed() {
        let directory = Directory::make("file");
        let path = directory.0.join(".s.PGSQL.6432");
        fs::write(&path, "precious").expect("write");
        let address = Address::Unix { directory: directory.0.clone(), port: 6432 };
        assert!(opened(vec![address]).is_err());
        assert_eq!(fs::read_to_string(&path).expect("read"), "precious");
    }

    #[test]
    fn the_pid_file_of_a_process_that_runs_is_respected() {
        let directory = Directory::make("pid");
        let path = directory.0.join("pondage.pid");
        fs::write(&path, "1\n").expect("write");
        let error = write_pid_file(&path, None).expect_err("running").to_string();
        assert!(error.contains("P0214") && error.contains("process 1 "), "{error}");
        fs::write(&path, "4194999\n").expect("write");
        let written = write_pid_file(&path, None).expect("stale");
        let text = fs::read_to_string(&path).expect("read");
        assert_eq!(text.trim(), std::process::id().to_string());
        drop(written);
        assert!(!path.exists());
    }
}
