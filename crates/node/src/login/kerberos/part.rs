//! A process that does a part of a login, says what came of it, and ends.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::workers::{MEMORY, limit_memory, wait_for};
use crate::process::{ProcessChannel, fork};
use crate::services::TimeLimit;

/// A process that does a part. It is killed when this is dropped.
pub(super) struct Part {
    process: libc::pid_t,
    channel: ProcessChannel,
}

impl Part {
    /// Starts a process called `name` that runs `body` with its end of the channel, and has no more memory than a keeper. It is killed
    /// after `patience`, whatever it does and whoever is there to hear of it.
    pub(super) fn start(
        name: &CStr,
        patience: Duration,
        body: impl FnOnce(&ProcessChannel) -> io::Result<()>,
    ) -> io::Result<Part> {
        let (channel, theirs) = ProcessChannel::pair()?;
        let process = fork(name, &[channel.as_fd()], || {
            // To the end, and also where the process may not lift it any more.
            let limited = TimeLimit::set(patience).map(std::mem::forget).and_then(|()| limit_memory(MEMORY));
            i32::from(limited.and_then(|()| body(&theirs)).is_err())
        })?;
        Ok(Part { process, channel })
    }

    /// The next message, if it comes in time.
    pub(super) fn hear(&self, patience: Duration) -> io::Result<Vec<u8>> {
        self.channel.set_patience(patience)?;
        self.channel.receive().map(|(said, _)| said)
    }

    /// The next message, read as JSON, if it comes in time and is that.
    pub(super) fn says<T: DeserializeOwned>(&self, patience: Duration) -> Option<T> {
        serde_json::from_slice(&self.hear(patience).ok()?).ok()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: takes integers; the process is this one's child, which was not waited for yet.
        unsafe { libc::kill(self.process, libc::SIGKILL) };
        let _ = wait_for(self.process);
    }
}

/// Says something to the process that started this one.
pub(super) fn tell(monitor: &ProcessChannel, says: &impl Serialize) -> io::Result<()> {
    monitor.send(&serde_json::to_vec(says)?, &[])
}
