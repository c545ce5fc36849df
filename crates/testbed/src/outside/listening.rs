//! A program of others that waits for connections on a host.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Error, Namespace, interrupt};

/// How long one may take to listen.
const START: Duration = Duration::from_secs(10);

/// A program that waits for connections. Dropped, it is killed.
#[derive(Debug)]
pub struct ListeningProgram {
    child: Child,
}

impl ListeningProgram {
    /// Starts it, with what it says in the file `log`, and waits until `address` on `host` takes connections.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be started, [`Error::TooSlow`] with what it said when it does not listen.
    pub fn start(
        mut command: Command,
        host: &Namespace,
        address: SocketAddr,
        log: &Path,
    ) -> Result<ListeningProgram, Error> {
        let doing = || format!("start {}", command.get_program().to_string_lossy());
        let file = fs::File::create(log).map_err(Error::doing(doing()))?;
        let failed = Error::doing(doing());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn();
        let mut program = ListeningProgram { child: child.map_err(failed)? };
        program.wait_until_ready(host, address, log)?;
        Ok(program)
    }

    fn wait_until_ready(&mut self, host: &Namespace, address: SocketAddr, log: &Path) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            interrupt::pause(Duration::from_millis(20))?;
            // On its own host, so that nothing of it crosses the link.
            if host.run("look for a program that listens", || TcpStream::connect(address)).is_ok() {
                return Ok(());
            }
            let ended = self.child.try_wait().map_err(Error::doing("look after a program"))?;
            if ended.is_some() || start.elapsed() > START {
                let said = fs::read_to_string(log).unwrap_or_default();
                let what = format!("a program did not listen at {address}");
                return Err(Error::TooSlow { what, waited: start.elapsed(), said });
            }
        }
    }

    /// The process's number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ListeningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
