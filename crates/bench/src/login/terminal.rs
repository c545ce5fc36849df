//! A person's terminal: keystrokes go in, and what the screen would get comes out.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use strait_testbed::Namespace;
use strait_testbed::outside::at_terminal;

use crate::error::Error;

/// Bytes of the screen that are remembered at least: a marker is far shorter.
const KEPT: usize = 4096;

/// A command on a terminal. Dropped, it is killed.
pub(crate) struct PersonTerminal {
    name: &'static str,
    keys: ChildStdin,
    screen: Receiver<Vec<u8>>,
    child: Child,
    /// The end of what came.
    seen: Vec<u8>,
}

impl PersonTerminal {
    /// Starts `command`, which was made for `host`, on a terminal there.
    pub(crate) fn start(
        name: &'static str,
        host: &Namespace,
        command: &Command,
    ) -> Result<PersonTerminal, Error> {
        let mut script = at_terminal(host, command);
        script.env("LC_ALL", "C.UTF-8");
        let mut child = script.spawn().map_err(Error::doing(format!("start {name}")))?;
        let (Some(keys), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Silent { what: "a terminal", way: name.to_owned() });
        };
        let (sender, screen) = channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok(PersonTerminal { name, keys, screen, child, seen: Vec::new() })
    }

    /// Types.
    pub(crate) fn type_in(&mut self, keys: &str) -> Result<(), Error> {
        let typed = self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush());
        typed.map_err(Error::doing(format!("type into {}", self.name)))
    }

    /// Waits until `text` came, looking only at what was not looked at before; gives how long it took.
    pub(crate) fn wait_for(&mut self, text: &str, patience: Duration) -> Result<Duration, Error> {
        let begin = Instant::now();
        loop {
            let found = self.seen.windows(text.len()).position(|window| window == text.as_bytes());
            if let Some(at) = found {
                self.seen.drain(..at + text.len());
                return Ok(begin.elapsed());
            }
            let left = patience.saturating_sub(begin.elapsed());
            match self.screen.recv_timeout(left) {
                Ok(bytes) => {
                    let forget = self.seen.len().saturating_sub(KEPT);
                    self.seen.drain(..forget);
                    self.seen.extend(bytes);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    let said = String::from_utf8_lossy(&self.seen).into_owned();
                    let what = format!("{} did not show {text:?}", self.name);
                    return Err(strait_testbed::Error::TooSlow { what, waited: begin.elapsed(), said }.into());
                }
            }
        }
    }

    /// Forgets what came so far, until nothing comes for `quiet`.
    pub(crate) fn settle(&mut self, quiet: Duration) {
        while self.screen.recv_timeout(quiet).is_ok() {}
        self.seen.clear();
    }
}

impl Drop for PersonTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
