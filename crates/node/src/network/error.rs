//! Why the system around the tunnel cannot be what it should be.

use std::io;
use std::path::PathBuf;

use ipnet::IpNet;

/// Why the system could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// No connection to the kernel's routing tables.
    #[error("cannot talk to the kernel's routing tables: {0}")]
    Netlink(#[source] io::Error),
    /// The interface does not take its settings.
    #[error("cannot {step} interface {interface}: {source}{}", privilege(source))]
    Link {
        /// What was tried.
        step: &'static str,
        /// Of which interface.
        interface: String,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such interface any more.
    #[error("another program removed the interface {interface}, or moved it to another network namespace")]
    Gone {
        /// Its name.
        interface: String,
    },
    /// An address cannot be given to the interface.
    #[error("cannot add address {address} to the interface: {source}{}", version(address, "address", source))]
    Address {
        /// Which.
        address: IpNet,
        /// What the system said.
        source: io::Error,
    },
    /// Another route to this network exists.
    #[error(
        "a route to {destination} exists; remove it (`ip route` shows it), take the network out of \
         `allowed_ips`, or manage routes yourself with `table = \"off\"`"
    )]
    RouteTaken {
        /// Where to.
        destination: IpNet,
    },
    /// A route cannot be made.
    #[error(
        "cannot route {destination} into the tunnel: {source}{}",
        version(destination, "allowed_ips", source)
    )]
    Route {
        /// Where to.
        destination: IpNet,
        /// What the system said.
        source: io::Error,
    },
    /// The table for the full tunnel is used by another interface.
    #[error(
        "routing table {table} is used by another interface; choose another `fwmark` (it is also the number of \
         the table)"
    )]
    TableTaken {
        /// Its number.
        table: u32,
    },
    /// A policy rule cannot be made.
    #[error("cannot add a policy rule for mark {mark:#x}: {source}{}", privilege(source))]
    Rule {
        /// The mark it looks at.
        mark: u32,
        /// What the system said.
        source: io::Error,
    },
    /// Nothing drops what would leave beside the tunnel.
    #[error("no nftables for `lockdown`: {0}; without it, lockdown needs `table = \"auto\"`")]
    Lockdown(#[source] io::Error),
    /// A kernel setting cannot be changed.
    #[error("cannot write {value} to {}: {source}{}", path.display(), privilege(source))]
    Setting {
        /// Its file.
        path: PathBuf,
        /// What was to be written.
        value: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// The remedy for an address of `key` that the kernel does not take: that it has no IPv6, or none on interfaces, or a lack of privilege.
fn version(address: &IpNet, key: &str, error: &io::Error) -> String {
    let is_off =
        [libc::EACCES, libc::EAFNOSUPPORT, libc::EOPNOTSUPP].map(Some).contains(&error.raw_os_error());
    if is_off && matches!(address, IpNet::V6(_)) {
        let turn_on = match error.raw_os_error() {
            Some(libc::EACCES) => ", or turn it on with `sysctl -w net.ipv6.conf.default.disable_ipv6=0`",
            _ => "",
        };
        return format!("; IPv6 is off on this system: leave IPv6 out of `{key}`{turn_on}");
    }
    privilege(error).to_owned()
}

fn privilege(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; run as root or with CAP_NET_ADMIN",
        _ => "",
    }
}
