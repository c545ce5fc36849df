//! etcd with one member, a folder of its own and, if need be, TLS.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::directory::{end_of, free_port};
use crate::namespace::command_here;
use crate::{Error, interrupt};

/// How long it may take to listen.
const START: Duration = Duration::from_secs(30);

/// Files for TLS: its own certificate, which is also what its JSON gateway shows to itself, the key, and who signs its clients'.
#[derive(Clone, Debug)]
pub struct EtcdTls {
    /// Its certificate, as PEM.
    pub certificate: PathBuf,
    /// The certificate's key, as PEM.
    pub key: PathBuf,
    /// Who signs the certificates of clients, as PEM.
    pub ca: PathBuf,
}

/// A running etcd, on the host of the thread that started it. Dropped, it is killed.
#[derive(Debug)]
pub struct Etcd {
    dir: PathBuf,
    port: u16,
    tls: Option<EtcdTls>,
    process: Option<Child>,
}

impl Etcd {
    /// Whether this machine has it.
    #[must_use]
    pub fn is_here() -> bool {
        let asked =
            Command::new("etcd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    }

    /// Starts one on loopback, with its data and its log in `dir`; with `tls`, clients need certificates.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be started, [`Error::TooSlow`] with its log when it does not listen.
    pub fn start(dir: &Path, tls: Option<EtcdTls>) -> Result<Etcd, Error> {
        let port = free_port().map_err(Error::doing("find a port for etcd"))?;
        let mut etcd = Etcd { dir: dir.join("etcd"), port, tls, process: None };
        etcd.run()?;
        Ok(etcd)
    }

    /// Where it is asked.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Its process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Starts its process, which must not run, and waits until it listens.
    ///
    /// # Errors
    /// As [`Etcd::start`].
    pub fn run(&mut self) -> Result<(), Error> {
        let failed = || Error::doing("start etcd");
        let log = self.dir.with_extension("log");
        let file = File::options().create(true).append(true).open(&log).map_err(failed())?;
        let url = self.url();
        let peers = format!("http://127.0.0.1:{}", free_port().map_err(failed())?);
        let mut command = command_here("etcd");
        // Distributions name others in the environment.
        command.env_clear().arg("--data-dir").arg(&self.dir);
        command.args(["--listen-client-urls", &url, "--advertise-client-urls", &url]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("default={peers}")]);
        if let Some(EtcdTls { certificate, key, ca }) = &self.tls {
            command.arg("--cert-file").arg(certificate).arg("--key-file").arg(key);
            command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(ca);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn();
        self.process = Some(child.map_err(failed())?);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            interrupt::pause(Duration::from_millis(20))?;
            if begun.elapsed() > START {
                let (what, waited) = ("etcd does not listen".to_owned(), begun.elapsed());
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
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}
