//! The way to a peer's login service: streams over the daemon that runs, or over a node of this command's own.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{PoisonError, RwLock};

use strait_login::{KERBEROS_SERVICE, SERVICE, VERSION};
use strait_node::client::{self, ClientError, OpenedStream, StreamOptions};
use strait_node::private_daemon::PrivateDaemon;
use strait_node::report::DaemonReport;
use strait_scheduler::Rate;
use strait_stream::StreamPriority;

use super::kerberos::TicketWish;
use crate::failure::{Code, Failure};
use crate::files::node_command;
use crate::running::CarryingNode;
use crate::status_line::StatusLine;
use crate::{configuration, running};

/// Most bytes of an account's name: what the head of a stream has room for.
const ACCOUNT_MAX: usize = 255;

/// How often a stream is opened that ends before the peer said anything.
const ATTEMPTS: usize = 2;

/// The way to one account of one peer, by which streams are opened again and again. It may be shared between threads.
pub(crate) struct LoginRoad {
    peer: String,
    account: Vec<u8>,
    node: Carrier,
    tickets: TicketWish,
}

/// The node that carries streams.
enum Carrier {
    /// A daemon, by its interface.
    Running(String),
    /// This command's own, by its configuration.
    Own { file: PathBuf, interface: String, daemon: RwLock<Option<PrivateDaemon>>, kind: OwnNode },
}

/// How a node of this command's own lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnNode {
    /// With this command, which opens all streams in one thread: that thread starts it again.
    Restarted,
    /// Keys at the terminal, as Ctrl-C, do not end it: this command still has to say good-bye over it then. It is not started again,
    /// as it would end with the thread that does that.
    Apart,
}

impl OwnNode {
    fn command(self, file: &Path) -> Result<Command, Failure> {
        let mut command = node_command(file)?;
        if self == OwnNode::Apart {
            command.process_group(0);
        }
        Ok(command)
    }
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
    /// The way, on which `tickets` are shown, over the daemon that is meant; where none runs, over a node with the user's own
    /// configuration, which is started. An empty account is the one that the peer's configuration names first.
    pub(crate) fn find(
        tunnel: Option<&str>,
        peer: &str,
        account: &str,
        kind: OwnNode,
        tickets: TicketWish,
    ) -> Result<LoginRoad, Failure> {
        if account.len() > ACCOUNT_MAX {
            return Err(Failure::new("the account's name is too long").code(Code::Environment));
        }
        let node = match running::carrying(tunnel, peer)? {
            CarryingNode::Own(file) => {
                let interface = configuration::load(&file)?.node.interface;
                let daemon = PrivateDaemon::start(kind.command(&file)?, &interface).map_err(Failure::new)?;
                Carrier::Own { file, interface, daemon: RwLock::new(Some(daemon)), kind }
            }
            CarryingNode::Running(interface) => Carrier::Running(interface),
        };
        Ok(LoginRoad { peer: peer.to_owned(), account: account.into(), node, tickets })
    }

    /// Whether its node is this command's own, and ends with it.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.node, Carrier::Own { .. })
    }

    /// Does `open`, which opens the first stream, and says meanwhile for whom the command waits.
    pub(crate) fn waiting<T>(&self, open: impl FnOnce() -> T) -> T {
        StatusLine::new().waiting(&self.peer, || self.report(), open)
    }

    /// Opens a stream to the account, before all others.
    ///
    /// # Errors
    /// As [`LoginRoad::open_to`].
    pub(crate) fn open(&self) -> Result<LoginStream, NoRoad> {
        self.open_to(&self.account, StreamPriority::Now)
    }

    /// Opens a stream, shows a ticket if one is wanted, and names the service and the account, of which 255 bytes count. Waits for half a
    /// minute at most while the peer is not reached, and as long for each answer of Kerberos.
    ///
    /// A node of this command's own that has ended may be started again ([`OwnNode`]); it ends with the thread that calls this.
    pub(crate) fn open_to(&self, account: &[u8], priority: StreamPriority) -> Result<LoginStream, NoRoad> {
        for _ in 0..ATTEMPTS {
            let opened = self.connect(priority)?;
            let (mut stream, rate_bits) = (opened.stream, opened.rate.map(Rate::bits));
            let broken = |error| NoRoad {
                failure: Failure::new(format!("cannot open a stream to the peer: {error}")),
                may_return: true,
            };
            match self.tickets.exchange(&self.peer, opened.kerberos.as_ref())? {
                None => stream.write_all(&head(SERVICE, account)).map_err(broken)?,
                Some(ready) => match ready.run(&mut stream, &head(KERBEROS_SERVICE, account))? {
                    Some(()) => {}
                    // What the daemon had was of a node that has been restarted.
                    None => continue,
                },
            }
            stream.set_nonblocking(true).map_err(broken)?;
            return Ok(LoginStream { stream, rate_bits });
        }
        let failure = Failure::new("the peer closed the stream before it said anything");
        let remedy = "it allows no logins if its configuration has no [[login]], and no Kerberos if it is of an older version";
        Err(NoRoad { failure: failure.remedy(remedy).code(Code::Interrupted), may_return: true })
    }

    /// Returns what the node shows.
    fn report(&self) -> Option<DaemonReport> {
        match &self.node {
            Carrier::Running(interface) => client::show(interface).ok(),
            Carrier::Own { daemon, .. } => {
                daemon.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.show().ok()
            }
        }
    }

    /// A stream that nothing was written to.
    fn connect(&self, priority: StreamPriority) -> Result<OpenedStream, NoRoad> {
        let options = StreamOptions { priority, kerberos: true };
        let opened = match &self.node {
            Carrier::Running(interface) => client::open_stream(interface, &self.peer, options),
            Carrier::Own { file, interface, daemon, kind } => {
                if *kind == OwnNode::Restarted {
                    restart(&mut daemon.write().unwrap_or_else(PoisonError::into_inner), file, interface)?;
                }
                // Streams that take their time do not wait for each other.
                match &*daemon.read().unwrap_or_else(PoisonError::into_inner) {
                    Some(daemon) => daemon.open_stream(&self.peer, options),
                    None => return Err(NoRoad { failure: Failure::new("no node"), may_return: true }),
                }
            }
        };
        opened.map_err(|error| {
            let may_return = !matches!(error, ClientError::Forbidden { .. } | ClientError::Answer { .. });
            NoRoad { failure: running::refused(error), may_return }
        })
    }
}

/// Starts a node that has ended again.
fn restart(daemon: &mut Option<PrivateDaemon>, file: &Path, interface: &str) -> Result<(), NoRoad> {
    if daemon.as_mut().is_none_or(PrivateDaemon::has_ended) {
        *daemon = None;
        let command = OwnNode::Restarted.command(file);
        let command = command.map_err(|failure| NoRoad { failure, may_return: false })?;
        let started = PrivateDaemon::start(command, interface);
        *daemon = Some(started.map_err(|error| NoRoad { failure: Failure::new(error), may_return: true })?);
    }
    Ok(())
}

/// The first bytes of a stream: the service, its version, and the account's name behind its length.
fn head(service: u8, account: &[u8]) -> Vec<u8> {
    let account = &account[..account.len().min(ACCOUNT_MAX)];
    let length = u8::try_from(account.len()).unwrap_or(u8::MAX);
    [&[service, VERSION, length], account].concat()
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
    fn a_head_names_the_service_and_as_much_of_the_account_as_fits() {
        assert_eq!(head(SERVICE, b""), [SERVICE, VERSION, 0]);
        assert_eq!(
            head(KERBEROS_SERVICE, b"alice"),
            [&[KERBEROS_SERVICE, VERSION, 5][..], b"alice"].concat()
        );
        assert_eq!(head(SERVICE, &[b'a'; 300]), [&[SERVICE, VERSION, 255][..], &[b'a'; 255]].concat());
    }

    #[test]
    fn users_and_peers() {
        assert_eq!(user_and_peer("office").unwrap(), ("", "office"));
        assert_eq!(user_and_peer("a@b@office").unwrap(), ("a@b", "office"));
        for wrong in ["", "a@", "@office"] {
            assert!(user_and_peer(wrong).is_err(), "{wrong}");
        }
    }
}
