//! Streams to the peer, opened beside what goes on: that may take half a minute.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use strait_node::wake::Wake;
use strait_stream::StreamPriority;

use crate::failure::Failure;
use crate::login::road::{LoginRoad, LoginStream};

/// The number of the part that a stream belongs to.
pub(super) type PartNumber = u64;
/// That of the first.
const FIRST: PartNumber = 1;

/// Opens streams, each in a thread of its own.
pub(super) struct Opener {
    road: Arc<LoginRoad>,
    wake: Arc<Wake>,
    sender: Sender<(PartNumber, Result<LoginStream, Failure>)>,
    receiver: Receiver<(PartNumber, Result<LoginStream, Failure>)>,
}

impl Opener {
    pub(super) fn new(road: LoginRoad) -> io::Result<Opener> {
        let (sender, receiver) = channel();
        Ok(Opener { road: Arc::new(road), wake: Arc::new(Wake::new()?), sender, receiver })
    }

    /// Begins to open a stream to an account.
    pub(super) fn open(&self, part: PartNumber, account: &[u8], priority: StreamPriority) {
        let account = account.to_vec();
        let (road, wake, sender) = (Arc::clone(&self.road), Arc::clone(&self.wake), self.sender.clone());
        thread::spawn(move || {
            let open = || road.open_to(&account, priority).map_err(Failure::from);
            // Later, programs at the peer have the terminal.
            let opened = if part == FIRST { road.waiting(open) } else { open() };
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
    pub(super) fn next(&self) -> Option<(PartNumber, Result<LoginStream, Failure>)> {
        self.receiver.try_recv().ok()
    }
}
