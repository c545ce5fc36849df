//! Streams to the peer, opened beside what goes on: that may take half a minute.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use strait_node::client::{self, OpenedStream};
use strait_node::private_daemon::{PrivateDaemon, own_configuration};
use strait_node::wake::Wake;
use strait_stream::StreamPriority;

use crate::failure::Failure;
use crate::files::node_command;
use crate::{configuration, running};

/// The node that carries the streams.
enum Node {
    /// A daemon, by its interface.
    Running(String),
    /// This command's own.
    Own(PrivateDaemon),
}

/// A peer, and the way to it.
pub(super) struct LoginPeer {
    node: Node,
    name: String,
}

impl LoginPeer {
    /// The peer of this name over the daemon of `interface`; without one, over a node of this command's own.
    pub(super) fn find(
        tunnel: Option<&str>,
        name: &str,
        interface: Option<&str>,
    ) -> Result<LoginPeer, Failure> {
        let node = match interface {
            Some(interface) => Node::Running(interface.to_owned()),
            None => Node::Own(own_node(tunnel)?),
        };
        Ok(LoginPeer { node, name: name.to_owned() })
    }

    fn open(&self, head: &[u8], priority: StreamPriority) -> Result<OpenedStream, Failure> {
        let opened = match &self.node {
            Node::Running(interface) => client::open_stream(interface, &self.name, priority),
            Node::Own(daemon) => daemon.open_stream(&self.name, priority),
        };
        let mut opened = opened.map_err(running::refused)?;
        let begun = opened.stream.write_all(head).and_then(|()| opened.stream.set_nonblocking(true));
        begun.map_err(Failure::doing("open a stream to the peer"))?;
        Ok(opened)
    }
}

/// Starts a node with the user's own configuration.
fn own_node(tunnel: Option<&str>) -> Result<PrivateDaemon, Failure> {
    let file = own_configuration().ok_or_else(|| {
        Failure::new(format!(
            "no tunnel is running{}",
            tunnel.map_or_else(String::new, |it| format!(" on {it}"))
        ))
        .remedy("start one with `strait up FILE`")
    })?;
    let interface = configuration::load(&file)?.node.interface;
    let mut command = node_command(&file)?;
    // Ctrl-C at the terminal is for `ssh`; this process still has to say good-bye over the node then.
    command.process_group(0);
    PrivateDaemon::start(command, &interface).map_err(Failure::new)
}

/// Whose stream it is.
pub(super) type PartNumber = u64;

/// Opens streams, each in a thread of its own.
pub(super) struct Opener {
    peer: Arc<LoginPeer>,
    wake: Arc<Wake>,
    sender: Sender<(PartNumber, Result<OpenedStream, Failure>)>,
    receiver: Receiver<(PartNumber, Result<OpenedStream, Failure>)>,
}

impl Opener {
    pub(super) fn new(peer: LoginPeer) -> io::Result<Opener> {
        let (sender, receiver) = channel();
        Ok(Opener { peer: Arc::new(peer), wake: Arc::new(Wake::new()?), sender, receiver })
    }

    /// Begins to open a stream that starts with `head`.
    pub(super) fn open(&self, part: PartNumber, head: Vec<u8>, priority: StreamPriority) {
        let (peer, wake, sender) = (Arc::clone(&self.peer), Arc::clone(&self.wake), self.sender.clone());
        thread::spawn(move || {
            let opened = peer.open(&head, priority);
            // Whose end it was may be gone.
            let _ = sender.send((part, opened));
            wake.raise();
        });
    }

    /// Becomes readable when a stream is there, or cannot be.
    pub(super) fn wake(&self) -> &Wake {
        &self.wake
    }

    /// What has come of one.
    pub(super) fn next(&self) -> Option<(PartNumber, Result<OpenedStream, Failure>)> {
        self.receiver.try_recv().ok()
    }
}

/// The stream alone, and the link's rate in bit/s.
pub(super) fn parts(opened: OpenedStream) -> (UnixStream, Option<u64>) {
    let rate = opened.rate.map(strait_scheduler::Rate::bits);
    (opened.stream, rate)
}
