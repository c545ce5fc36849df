//! What the processes have in common that serve streams of peers, for a node: who the peers are, and streams that were refused.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use strait_node::config::Config;
use strait_node::services::{LINGER, StreamHead, UNLISTED};

/// Refused streams that stay open at most; those beyond are closed without a word.
const LINGERING: usize = 64;

/// Who may open streams by a configuration.
#[derive(Default)]
pub(crate) struct KnownPeers {
    /// Names and public keys.
    peers: Vec<(String, String)>,
    /// Whether nodes that are no peers may.
    unlisted: bool,
}

impl KnownPeers {
    /// Peers that have a public key, and what the file says of others.
    pub(crate) fn of(config: &Config) -> KnownPeers {
        let key = |peer: &strait_node::config::PeerSection| {
            Some((peer.name.clone(), peer.public_key()?.to_string()))
        };
        KnownPeers { peers: config.peers.iter().filter_map(key).collect(), unlisted: config.unlisted() > 0 }
    }

    /// Whether a stream is of one of them: the configuration may have changed since it was opened.
    pub(crate) fn opened(&self, head: &StreamHead) -> bool {
        self.is_one(&head.peer, &head.key)
    }

    /// True if one is called so, and has this public key.
    pub(crate) fn is_one(&self, peer: &str, key: &str) -> bool {
        let listed = self.peers.iter().any(|(name, its)| name == peer && its == key);
        listed || (self.unlisted && peer == UNLISTED)
    }

    /// Whether one is called so.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.peers.iter().any(|(other, _)| other == name) || name == UNLISTED
    }
}

/// Streams whose clients were told why they are not served, and since when. They are closed later: at once, what a client still writes
/// would undo what it is told.
#[derive(Default)]
pub(crate) struct RefusedStreams(VecDeque<(Instant, UnixStream)>);

impl RefusedStreams {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps a stream on which `told` was written; one on which that failed, or that is one too many, is closed.
    pub(crate) fn keep(&mut self, stream: UnixStream, told: io::Result<()>) {
        let said = told.and_then(|()| stream.shutdown(Shutdown::Write));
        if said.is_ok() && self.0.len() < LINGERING {
            self.0.push_back((Instant::now(), stream));
        }
    }

    /// Closes those that were open for long enough.
    pub(crate) fn expire(&mut self) {
        while self.0.front().is_some_and(|(since, _)| since.elapsed() >= LINGER) {
            self.0.pop_front();
        }
    }
}
