//! A session that ends early tells the peer, but does not wait for it for long.

use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::event::Watch;

/// What the last message may take to leave: round trips of a satellite link. The threads of a session end with the stream.
pub(super) const GRACE: Duration = Duration::from_secs(3);
/// How often it looks whether they have ended.
const LOOK: Duration = Duration::from_millis(5);

/// Ends the stream when the threads that use it have ended. What is still to be written is waited for if the session is `whole`;
/// otherwise, and for the other thread, it waits only for a while.
pub(crate) fn end_stream<T>(
    writing: &ScopedJoinHandle<'_, T>,
    other: &ScopedJoinHandle<'_, T>,
    whole: bool,
    watch: Watch<'_>,
) {
    while whole && !writing.is_finished() {
        thread::sleep(LOOK);
    }
    let begun = Instant::now();
    while !(writing.is_finished() && other.is_finished()) && begun.elapsed() < GRACE {
        thread::sleep(LOOK);
    }
    (watch.hang_up)();
}
