//! A python program of `tests/outside` that is talked to line by line.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use strait_testbed::outside;

/// How often waiting looks at the clock.
const TICK: Duration = Duration::from_millis(20);

/// A running program; dropped, it is killed.
pub(crate) struct Lines {
    child: Child,
    input: UnixStream,
    output: BufReader<UnixStream>,
    partial: String,
}

impl Lines {
    /// Starts `script` of `tests/outside` by `python`, a command for [`outside::PYTHON`] on some host.
    pub(crate) fn start(mut python: Command, script: &str, arguments: &[&str]) -> Lines {
        let (near, far) = UnixStream::pair().unwrap();
        let far = OwnedFd::from(far);
        python
            .arg("-B")
            .arg(outside::file(script))
            .args(arguments)
            .stdin(far.try_clone().unwrap())
            .stdout(far);
        let child = python.spawn().unwrap();
        near.set_read_timeout(Some(TICK)).unwrap();
        Lines {
            child,
            input: near.try_clone().unwrap(),
            output: BufReader::new(near),
            partial: String::new(),
        }
    }

    /// Writes a line.
    pub(crate) fn send(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next line, without its end, if it comes in time.
    pub(crate) fn receive(&mut self, patience: Duration) -> Option<String> {
        let start = Instant::now();
        loop {
            match self.output.read_line(&mut self.partial) {
                Ok(0) => panic!("a program of tests/outside has ended: {:?}", self.child.try_wait()),
                Ok(_) => return Some(std::mem::take(&mut self.partial).trim_end().to_owned()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => panic!("{error}"),
            }
            if start.elapsed() >= patience {
                return None;
            }
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
