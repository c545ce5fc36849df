//! Directories of keys as processes, and what an authority signs for them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use strait_keying::directory::{Certificate, CertificateError, CertificateTerms};
use strait_keying::sessionless::KeyCard;
use strait_keying::{PrivateKey, PublicKey};
use strait_node::directory::DirectoryConnection;

use crate::namespace::command_here;
use crate::{Error, interrupt};

/// How long a directory may take to listen, and each step of a connection to it.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a log that are said when something fails.
const SAID: usize = 4096;

/// Ports that were given out: a program that takes one a moment later must not find another test's there.
static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A port of loopback that is free now, and that this process was not given before.
pub(crate) fn free_port() -> io::Result<u16> {
    loop {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        if GIVEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
    }
}

/// The end of a log.
pub(crate) fn end_of(log: &Path) -> String {
    let all = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(all.get(all.len().saturating_sub(SAID)..).unwrap_or_default()).into_owned()
}

/// The private key of the node with this number.
#[must_use]
pub fn node_key(number: u32) -> PrivateKey {
    let mut seed = [3; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    PrivateKey::generate(&seed)
}

/// A certificate for the node with this number, called `nN`, with an address in 10.0.0.0/8 that has its lower 24 bits, from two hours
/// before the second `until` (since 1970) to that.
///
/// # Errors
/// None with a number of this kind; they are [`Certificate::issue`]'s.
pub fn certificate(
    authority: &PrivateKey,
    serial: u64,
    number: u32,
    until: u64,
) -> Result<Certificate, CertificateError> {
    let own = node_key(number);
    let [_, a, b, c] = number.to_be_bytes();
    let network = format!("10.{a}.{b}.{c}/32").parse().map_err(|_| CertificateError::Field("network"))?;
    let card = KeyCard::plain(format!("n{number}").parse().map_err(CertificateError::Card)?, own.public());
    let terms = CertificateTerms {
        serial,
        name: card.name.clone(),
        networks: vec![network],
        valid: (until.saturating_sub(7200), until),
        endpoint: None,
    };
    Certificate::issue(authority, &terms, &card.sign(&own))
}

/// A directory, on the host of the thread that started it. Dropped, it is killed.
#[derive(Debug)]
pub struct DirectoryProcess {
    program: PathBuf,
    file: PathBuf,
    server: String,
    process: Option<Child>,
}

impl DirectoryProcess {
    /// Starts `program`, strait-directory, on loopback, for what `authority` signs, with its files in `dir`, called after `name`. `more`
    /// is added to its configuration: keys of `[directory]`, then other sections.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be started, [`Error::TooSlow`] with its log when it does not listen.
    pub fn start(
        program: &Path,
        dir: &Path,
        name: &str,
        authority: &PublicKey,
        more: &str,
    ) -> Result<DirectoryProcess, Error> {
        DirectoryProcess::start_at(Ipv4Addr::LOCALHOST.into(), program, dir, (name, authority, more))
    }

    /// As [`DirectoryProcess::start`], on another address of the host, or on all of them.
    ///
    /// # Errors
    /// As [`DirectoryProcess::start`].
    pub fn start_at(
        address: IpAddr,
        program: &Path,
        dir: &Path,
        (name, authority, more): (&str, &PublicKey, &str),
    ) -> Result<DirectoryProcess, Error> {
        let port = free_port().map_err(Error::doing("find a port for a directory"))?;
        let server = SocketAddr::new(address, port).to_string();
        let text = format!(
            "[directory]\nlisten = \"{server}\"\nauthority = \"{authority}\"\nstore = \"{name}.redb\"\n{more}"
        );
        let file = dir.join(format!("{name}.toml"));
        fs::write(&file, text).map_err(Error::doing("write the configuration of a directory"))?;
        let mut it = DirectoryProcess { program: program.to_owned(), file, server, process: None };
        it.run()?;
        Ok(it)
    }

    /// Starts its process, which must not run, and waits until it listens.
    ///
    /// # Errors
    /// As [`DirectoryProcess::start`].
    pub fn run(&mut self) -> Result<(), Error> {
        let failed = || Error::doing("start strait-directory");
        let log = self.log();
        let file = File::options().create(true).append(true).open(&log).map_err(failed())?;
        let before = file.metadata().map_err(failed())?.len();
        // Another program may have taken the port meanwhile.
        let serves = || {
            let all = fs::read(&log).unwrap_or_default();
            let said = all.get(usize::try_from(before).unwrap_or(usize::MAX)..).unwrap_or_default();
            String::from_utf8_lossy(said).contains("serving")
        };
        let child = command_here(&self.program).arg(&self.file).stdin(Stdio::null()).stderr(file).spawn();
        let child = self.process.insert(child.map_err(failed())?);
        let begun = Instant::now();
        while !serves() || DirectoryConnection::open(&self.server, PATIENCE).is_err() {
            interrupt::pause(Duration::from_millis(10))?;
            let ended = child.try_wait().map_err(failed())?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let (what, waited) = ("a directory does not listen".to_owned(), begun.elapsed());
                return Err(Error::TooSlow { what, waited, said: end_of(&log) });
            }
        }
        Ok(())
    }

    /// Kills it.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Where nodes ask, `host:port`.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Its process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// The file with what it has logged.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.file.with_extension("log")
    }

    /// The file of its store.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.file.with_extension("redb")
    }

    /// A connection as a node has one.
    ///
    /// # Errors
    /// [`Error::System`] as `connect(2)`.
    pub fn open(&self) -> Result<DirectoryConnection, Error> {
        DirectoryConnection::open(&self.server, PATIENCE).map_err(Error::doing("reach a directory"))
    }
}

impl Drop for DirectoryProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
