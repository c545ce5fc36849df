//! Signals to a running node.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
pub(super) enum SignalAction {
    /// To end.
    Terminate,
    /// To read the configuration again.
    Reload,
}

/// The signals that mean something to a node.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Takes them from now on; within a runtime.
    pub(super) fn new() -> std::io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next of them.
    pub(super) async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.terminate.recv() => SignalAction::Terminate,
            _ = self.interrupt.recv() => SignalAction::Terminate,
            _ = self.hangup.recv() => SignalAction::Reload,
        }
    }
}
