//! Addresses of clients.

use std::io;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Addresses {
    All,
    /// `samehost` and `samenet` have one for each of this machine's addresses.
    Nets(Vec<Net>),
}

/// Addresses that are equal in the bits of a mask, which may have holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Net {
    address: IpAddr,
    mask: IpAddr,
}

impl Addresses {
    pub fn have(&self, address: IpAddr) -> bool {
        // On a socket for both, IPv4 has the form of IPv6.
        let address = address.to_canonical();
        match self {
            Addresses::All => true,
            Addresses::Nets(nets) => nets.iter().any(|net| net.has(address)),
        }
    }

    /// Whether they are this machine's own, whatever interfaces it has.
    pub fn are_loopback(&self) -> bool {
        match self {
            Addresses::All => false,
            Addresses::Nets(nets) => nets.iter().all(|net| net.is_loopback()),
        }
    }
}

impl Net {
    /// None: they are of different families.
    pub fn masked(address: IpAddr, mask: IpAddr) -> Option<Net> {
        (address.is_ipv4() == mask.is_ipv4()).then_some(Net { address, mask })
    }

    /// None: the family has no such many bits.
    pub fn prefix(address: IpAddr, bits: u32) -> Option<Net> {
        let mask = match address {
            IpAddr::V4(_) if bits <= 32 => {
                IpAddr::V4(u32::MAX.checked_shl(32 - bits).unwrap_or(0).into())
            }
            IpAddr::V6(_) if bits <= 128 => {
                IpAddr::V6(u128::MAX.checked_shl(128 - bits).unwrap_or(0).into())
            }
            _ => return None,
        };
        Some(Net { address, mask })
    }

    /// `10.0.0.0/8`, or an address that is meant alone.
    pub fn parse(text: &str) -> Option<Net> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address.parse::<IpAddr>().ok()?, bits.parse().ok()?),
            None => {
                let address = text.parse::<IpAddr>().ok()?;
                (address, if address.is_ipv4() { 32 } else { 128 })
            }
        };
        Net::prefix(address, bits)
    }

    /// Source: `pg_range_sockaddr` in `src/backend/libpq/ifaddr.c`.
    pub fn has(&self, address: IpAddr) -> bool {
        match (address, self.address, self.mask) {
            (IpAddr::V4(one), IpAddr::V4(net), IpAddr::V4(mask)) => {
                (one.to_bits() ^ net.to_bits()) & mask.to_bits() == 0
            }
            (IpAddr::V6(one), IpAddr::V6(net), IpAddr::V6(mask)) => {
                (one.to_bits() ^ net.to_bits()) & mask.to_bits() == 0
            }
            _ => false,
        }
    }

    fn is_loopback(&self) -> bool {
        match (self.address, self.mask) {
            (IpAddr::V4(net), IpAddr::V4(mask)) => net.is_loopback() && mask.octets()[0] == 255,
            (IpAddr::V6(net), IpAddr::V6(mask)) => net.is_loopback() && mask.to_bits() == u128::MAX,
            _ => false,
        }
    }
}

/// This machine's addresses as they are now, with the masks of their networks or, alone, with all
/// bits. `full`: alone.
///
/// # Errors
/// What the operating system says.
pub(super) fn own(full: bool) -> io::Result<Vec<Net>> {
    let found = getifaddrs().map_err(io::Error::from)?;
    let nets = found.filter_map(|interface| {
        let address = ip(interface.address.as_ref()?)?;
        match interface.netmask.as_ref().and_then(ip) {
            Some(mask) if !full => Net::masked(address, mask),
            _ => Net::prefix(address, if address.is_ipv4() { 32 } else { 128 }),
        }
    });
    Ok(nets.collect())
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|known| IpAddr::V4(known.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|known| IpAddr::V6(known.ip())))
}
