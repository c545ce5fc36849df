//! Threads that attack until they are to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Attackers at work; they end with this.
pub(super) struct Attackers {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Attackers {
    /// Starts a thread for each; it has to end soon once its flag is set.
    pub(super) fn start<W: FnOnce(&AtomicBool) + Send + 'static>(
        works: impl IntoIterator<Item = W>,
    ) -> Attackers {
        let ended = Arc::new(AtomicBool::new(false));
        let start = |work: W| {
            let ended = Arc::clone(&ended);
            thread::spawn(move || work(&ended))
        };
        let threads = works.into_iter().map(start).collect();
        Attackers { ended, threads }
    }
}

impl Drop for Attackers {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
