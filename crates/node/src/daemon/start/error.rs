//! Why a node does not start, or does not go on.

use std::io;

use strait_keying::SetupError;

use super::super::key_log::KeyLogError;
use crate::config::{ConfigError, KeyFileError};
use crate::counter_file::CounterFileError;
use crate::daemon::StarterError;
use crate::direct::DirectError;
use crate::local::LocalError;
use crate::metrics::MetricsError;
use crate::privileges::{PrivilegeError, UserError};
use crate::tun::TunError;
use crate::udp::UdpError;
use crate::web::WebError;

/// Why a node is not up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The private key.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The tunnel device.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The socket.
    #[error(transparent)]
    Udp(#[from] UdpError),
    /// The sockets for packets directly behind IP.
    #[error(transparent)]
    Direct(#[from] DirectError),
    /// The count of a manual key's sequence numbers.
    #[error(transparent)]
    Counter(#[from] CounterFileError),
    /// Addresses, routes and rules.
    #[error(transparent)]
    Network(#[from] StarterError),
    /// The local socket.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// Capabilities that are not needed.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// The user that packets are handled as.
    #[error(transparent)]
    User(#[from] UserError),
    /// The key manager.
    #[error(transparent)]
    Keying(#[from] SetupError),
    /// The file for exported keys.
    #[error(transparent)]
    KeyLog(#[from] KeyLogError),
    /// The metrics' port.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The page's port.
    #[error(transparent)]
    Web(#[from] WebError),
    /// Threads, signals, randomness.
    #[error("the system refuses what every program needs: {0}")]
    Runtime(#[source] io::Error),
    /// It was up and something it stands on broke.
    #[error("{what} failed: {source}; the tunnel is down")]
    Broken {
        /// What broke.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
