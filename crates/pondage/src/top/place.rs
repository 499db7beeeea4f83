//! Where the console of a configuration is, and who may look at it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use toml_edit::{value, DocumentMut, Item, Table};
use wire::pg::auth::Secret;

use crate::config::{Address, Config};

/// At a Unix socket who runs Pondage is let in by this name without a password.
pub const OWNER: &str = "pondage";

/// A configuration whose only server is the Pondage that `config` is of, and who logs in.
///
/// # Errors
/// Nobody is known who could.
pub fn of(config: &Config) -> Result<(Config, String), String> {
    let mut server = Table::new();
    let user = match reached(config)? {
        Reached::Socket(directory, port) => {
            server["host"] = value(directory);
            server["port"] = value(i64::from(port));
            OWNER.to_owned()
        }
        Reached::Tcp { address, user, password } => {
            server["host"] = value(address.ip().to_string());
            server["port"] = value(i64::from(address.port()));
            server["user"] = value(user.clone());
            server["password"] = value(password);
            user
        }
    };
    let mut all = Table::new();
    all["*"] = Item::Table(server);
    let mut document = DocumentMut::new();
    document["databases"] = Item::Table(all);
    let config = Config::from_text(&document.to_string()).map_err(|report| report.to_string())?;
    Ok((config, user))
}

enum Reached {
    Socket(String, u16),
    Tcp { address: SocketAddr, user: String, password: String },
}

fn reached(config: &Config) -> Result<Reached, String> {
    let sockets = config.listen.postgres.iter().find_map(|address| match address {
        Address::Unix { directory, port } => Some((directory.to_str()?.to_owned(), *port)),
        Address::Tcp(_) => None,
    });
    if let Some((directory, port)) = sockets {
        return Ok(Reached::Socket(directory, port));
    }
    let of_tcp = config.listen.postgres.iter().find_map(|address| match address {
        Address::Tcp(address) => Some(near(*address)),
        Address::Unix { .. } => None,
    });
    let address = of_tcp.ok_or("the configuration has no door for PostgreSQL's clients")?;
    let users = config.auth.admin_users.iter().chain(&config.auth.stats_users);
    let known = users.into_iter().find_map(|user| match config.secret(user) {
        Some(Secret::Plain(password)) => Some((user.clone(), password.clone())),
        _ => None,
    });
    let (user, password) = known.ok_or(
        "the configuration has no password of an admin_user or stats_user: say \
         pondage top postgres://USER:PASSWORD@HOST:PORT",
    )?;
    Ok(Reached::Tcp { address, user, password })
}

/// Who listens everywhere is reached here.
fn near(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(toml: &str) -> Result<String, String> {
        let toml = format!("{toml}\n[databases.app]\nhost = \"db\"\n");
        let (config, user) = of(&Config::from_text(&toml).expect("valid"))?;
        let pool = config.pool("pondage", &user).expect("a pool");
        Ok(format!("{:?} {} {user}", pool.upstream.host, pool.upstream.port))
    }

    #[test]
    fn the_socket_is_taken_before_a_password() {
        let both = "[listen]\npostgres = [\"0.0.0.0:7000\", \"unix:/run/pondage\"]\n\
                    [auth]\nadmin_users = [\"boss\"]\n[users.boss]\npassword = \"it's \\\"x\\\"\"";
        assert_eq!(found(both).expect("a place"), "Unix(\"/run/pondage\") 7000 pondage");
        let tcp = both.replace(", \"unix:/run/pondage\"", "");
        assert_eq!(found(&tcp).expect("a place"), "Tcp(\"127.0.0.1\") 7000 boss");
        let nobody = found("[listen]\npostgres = [\"[::]:7000\"]").expect_err("nobody");
        assert!(nobody.contains("postgres://USER:PASSWORD"), "{nobody}");
    }
}
