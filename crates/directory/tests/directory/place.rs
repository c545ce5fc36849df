//! What the tests have: an authority, directories, etcd.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use strait_keying::PrivateKey;
use strait_keying::directory::{Answer, Certificate, Question, RevocationList};
use strait_keying::sessionless::key_name;
use strait_node::directory::DirectoryConnection;
use strait_testbed::Workdir;
pub(crate) use strait_testbed::directory::PATIENCE;
use strait_testbed::directory::{self, DirectoryProcess, node_key};
use strait_testbed::outside::{Etcd, EtcdTls};
use strait_testdata::skip::{Need, skip};

pub(crate) fn authority() -> PrivateKey {
    PrivateKey::generate(&[9; 32])
}

/// A certificate for the node with this number, called `nN`, at 10.(N).
pub(crate) fn certificate(serial: u64, number: u32) -> Certificate {
    signed(&authority(), serial, number, strait_directory::now() + 3600)
}

pub(crate) fn signed(by: &PrivateKey, serial: u64, number: u32, until: u64) -> Certificate {
    directory::certificate(by, serial, number, until).unwrap()
}

pub(crate) fn list(number: u64, serials: &[u64]) -> RevocationList {
    RevocationList::issue(&authority(), number, strait_directory::now(), serials.iter().copied()).unwrap()
}

pub(crate) fn find(number: u32) -> Question {
    Question::Find(key_name(&node_key(number).public()))
}

/// A directory.
#[derive(Debug)]
pub(crate) struct Directory(DirectoryProcess);

impl Directory {
    /// Starts one called `name` in `dir`; `more` is added to its configuration.
    pub(crate) fn start(dir: &Path, name: &str, more: &str) -> Directory {
        let program = Path::new(env!("CARGO_BIN_EXE_strait-directory"));
        Directory(DirectoryProcess::start(program, dir, name, &authority().public(), more).unwrap())
    }

    /// What one says that does not start.
    pub(crate) fn refused(dir: &Path, name: &str, more: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_strait-directory"));
        let started = DirectoryProcess::start(program, dir, name, &authority().public(), more);
        started.expect_err("it started").to_string()
    }

    /// What it has logged.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.0.log()).unwrap()
    }

    /// Starts its process, which must not run.
    pub(crate) fn run(&mut self) {
        self.0.run().unwrap();
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.0.kill();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.pid().unwrap()
    }

    pub(crate) fn server(&self) -> &str {
        self.0.server()
    }

    pub(crate) fn open(&self) -> DirectoryConnection {
        self.0.open().unwrap()
    }

    pub(crate) fn ask(&self, question: &Question) -> Answer {
        self.open().ask(question).unwrap()
    }

    pub(crate) fn put(&self, certificate: &Certificate) -> Result<Answer, String> {
        let question = Question::PutCertificate(certificate.as_bytes().into());
        self.open().ask(&question).map_err(|error| error.to_string())
    }

    pub(crate) fn put_list(&self, list: &RevocationList) -> Result<Answer, String> {
        let question = Question::PutList(list.as_bytes().into());
        self.open().ask(&question).map_err(|error| error.to_string())
    }
}

/// Waits until there is something.
pub(crate) fn until<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(it) = there() {
            return it;
        }
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        sleep(Duration::from_millis(10));
    }
}

pub(crate) fn answer(certificate: &Certificate) -> Answer {
    Answer::Certificate(certificate.as_bytes().into())
}

/// An etcd in `dir`, if this machine has it.
pub(crate) fn etcd(dir: &Path, tls: Option<EtcdTls>) -> Option<Etcd> {
    if !(Etcd::is_here() || skip(Need::Programs, "no etcd")) {
        return None;
    }
    Some(Etcd::start(dir, tls).unwrap())
}

/// A folder for all of it.
pub(crate) fn folder() -> Workdir {
    Workdir::create().unwrap()
}
