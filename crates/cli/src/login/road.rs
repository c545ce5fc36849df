//! The way to a peer's login service: streams over the daemon that runs, or over a node of this command's own.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use std::io::Write;
use std::os::unix::net::UnixStream;

use strait_login::{SERVICE, VERSION};
use strait_node::client::{self, ClientError};
use strait_node::private_daemon::{PrivateDaemon, own_configuration};
use strait_stream::StreamPriority;

use crate::failure::{Code, Failure};
use crate::files::node_command;
use crate::flags::Which;
use crate::{configuration, running};

/// Most bytes of an account's name: what the head of a stream has room for.
const ACCOUNT_MAX: usize = 255;

/// The way to one account of one peer, by which streams are opened again and again. It may be shared between threads.
pub(crate) struct LoginRoad {
    peer: String,
    account: Vec<u8>,
    node: Carrier,
}

/// The node that carries streams.
enum Carrier {
    /// A daemon, by its interface.
    Running(String),
    /// This command's own, by its configuration.
    Own { file: PathBuf, interface: String, daemon: Mutex<Option<PrivateDaemon>> },
}

/// A stream to the login service of a peer, behind its head.
pub(crate) struct LoginStream {
    pub(crate) stream: UnixStream,
    /// The rate of the link to the peer in bit/s, if it is known.
    pub(crate) rate_bits: Option<u64>,
}

/// Why there is no stream.
#[derive(Debug)]
pub(crate) struct NoRoad {
    pub(crate) failure: Failure,
    /// Whether it is worth another try: the peer or the daemon is away.
    pub(crate) may_return: bool,
}

impl From<NoRoad> for Failure {
    fn from(none: NoRoad) -> Failure {
        none.failure
    }
}

impl LoginRoad {
    /// The way over the daemon that is meant; where none runs, over a node with the user's own configuration, which is started. An
    /// empty account is the one that the peer's configuration names first.
    pub(crate) fn find(tunnel: Option<&str>, peer: &str, account: &str) -> Result<LoginRoad, Failure> {
        if account.len() > ACCOUNT_MAX {
            return Err(Failure::new("the account's name is too long").code(Code::Environment));
        }
        let which = running::which(&Which { tunnel: tunnel.map(str::to_owned) });
        let node = match (which, own_configuration()) {
            (Err(failure), Some(file)) if failure.number() == Code::NotRunning.number() => {
                let interface = configuration::load(&file)?.node.interface;
                let daemon = PrivateDaemon::start(node_command(&file)?, &interface).map_err(Failure::new)?;
                Carrier::Own { file, interface, daemon: Mutex::new(Some(daemon)) }
            }
            (which, _) => Carrier::Running(which?),
        };
        Ok(LoginRoad { peer: peer.to_owned(), account: account.into(), node })
    }

    /// Opens a stream and names the service and the account. Waits for half a minute at most while the peer is not reached.
    ///
    /// A node of this command's own that has ended is started again; it ends with the thread that calls this.
    pub(crate) fn open(&self) -> Result<LoginStream, NoRoad> {
        let opened = match &self.node {
            Carrier::Running(interface) => client::open_stream(interface, &self.peer, StreamPriority::Now),
            Carrier::Own { file, interface, daemon } => {
                let mut daemon = daemon.lock().unwrap_or_else(PoisonError::into_inner);
                if daemon.as_mut().is_none_or(PrivateDaemon::has_ended) {
                    *daemon = None;
                    let command =
                        node_command(file).map_err(|failure| NoRoad { failure, may_return: false })?;
                    let again = |failure| NoRoad { failure, may_return: true };
                    let started = PrivateDaemon::start(command, interface);
                    *daemon = Some(started.map_err(|error| again(Failure::new(error)))?);
                }
                match &*daemon {
                    Some(daemon) => daemon.open_stream(&self.peer, StreamPriority::Now),
                    None => return Err(NoRoad { failure: Failure::new("no node"), may_return: true }),
                }
            }
        };
        let opened = opened.map_err(|error| {
            let may_return = !matches!(error, ClientError::Forbidden { .. } | ClientError::Answer { .. });
            NoRoad { failure: running::refused(error), may_return }
        })?;
        let mut stream = opened.stream;
        let written = stream.write_all(&self.head()).and_then(|()| stream.set_nonblocking(true));
        written.map_err(|error| NoRoad {
            failure: Failure::new(format!("cannot open a stream to the peer: {error}")),
            may_return: true,
        })?;
        Ok(LoginStream { stream, rate_bits: opened.rate.map(strait_scheduler::Rate::bits) })
    }

    /// The first bytes of a stream: the service, its version, and the account's name behind its length.
    fn head(&self) -> Vec<u8> {
        let length = u8::try_from(self.account.len()).unwrap_or(u8::MAX);
        [&[SERVICE, VERSION, length][..], &self.account].concat()
    }
}

/// `USER@PEER`, of which the user may be missing.
pub(crate) fn user_and_peer(text: &str) -> Result<(&str, &str), Failure> {
    let (user, peer) = text.rsplit_once('@').unwrap_or(("", text));
    if peer.is_empty() || text.starts_with('@') {
        return Err(Failure::new(format!("`{text}` names no peer"))
            .remedy("write PEER or USER@PEER")
            .code(Code::Environment));
    }
    Ok((user, peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_peers() {
        assert_eq!(user_and_peer("office").unwrap(), ("", "office"));
        assert_eq!(user_and_peer("a@b@office").unwrap(), ("a@b", "office"));
        for wrong in ["", "a@", "@office"] {
            assert!(user_and_peer(wrong).is_err(), "{wrong}");
        }
    }
}
