//! What the tests have: an authority, directories, etcd.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use strait_keying::PrivateKey;
use strait_keying::directory::{Answer, Certificate, CertificateTerms, Question, RevocationList};
use strait_keying::sessionless::{KeyCard, key_name};
use strait_node::directory::DirectoryConnection;
use strait_testbed::Workdir;
use strait_testdata::skip::{Need, skip};

/// How long anything may take that the tests wait for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn authority() -> PrivateKey {
    PrivateKey::generate(&[9; 32])
}

/// The private key of the node with this number.
pub(crate) fn node(number: u32) -> PrivateKey {
    let mut seed = [3; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    PrivateKey::generate(&seed)
}

/// A certificate for the node with this number, called `nN`, at 10.(N).
pub(crate) fn certificate(serial: u64, number: u32) -> Certificate {
    signed(&authority(), serial, number, strait_directory::now() + 3600)
}

pub(crate) fn signed(by: &PrivateKey, serial: u64, number: u32, until: u64) -> Certificate {
    let own = node(number);
    let card = KeyCard::plain("self".parse().unwrap(), own.public());
    let [_, a, b, c] = number.to_be_bytes();
    let terms = CertificateTerms {
        serial,
        name: format!("n{number}").parse().unwrap(),
        networks: vec![format!("10.{a}.{b}.{c}/32").parse().unwrap()],
        valid: (until - 7200, until),
        endpoint: None,
    };
    Certificate::issue(by, &terms, &card.sign(&own)).unwrap()
}

pub(crate) fn list(number: u64, serials: &[u64]) -> RevocationList {
    RevocationList::issue(&authority(), number, strait_directory::now(), serials.iter().copied()).unwrap()
}

pub(crate) fn find(number: u32) -> Question {
    Question::Find(key_name(&node(number).public()))
}

/// A port of this host that is free now.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A process that is killed when its owner goes.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory.
#[derive(Debug)]
pub(crate) struct Directory {
    file: PathBuf,
    pub(crate) server: String,
    process: Option<Running>,
}

impl Directory {
    /// Starts one called `name` in `dir`; `more` is added to its configuration.
    pub(crate) fn start(dir: &Path, name: &str, more: &str) -> Directory {
        let port = free_port();
        let text = format!(
            "[directory]\nlisten = \"127.0.0.1:{port}\"\nauthority = \"{}\"\nstore = \"{name}.redb\"\n{more}",
            authority().public()
        );
        let file = dir.join(format!("{name}.toml"));
        std::fs::write(&file, text).unwrap();
        let mut it = Directory { file, server: format!("127.0.0.1:{port}"), process: None };
        it.run();
        it
    }

    /// Starts its process, which must not run.
    pub(crate) fn run(&mut self) {
        let log = File::options().create(true).append(true).open(self.file.with_extension("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait-directory"));
        let child = command.arg(&self.file).stderr(Stdio::from(log)).spawn().unwrap();
        self.process = Some(Running(child));
        until("the directory listens", || DirectoryConnection::open(&self.server, PATIENCE).ok());
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.process = None;
    }

    pub(crate) fn open(&self) -> DirectoryConnection {
        DirectoryConnection::open(&self.server, PATIENCE).unwrap()
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

/// etcd with a folder, a port and, if need be, TLS.
#[derive(Debug)]
pub(crate) struct Etcd {
    dir: PathBuf,
    port: u16,
    process: Option<Running>,
}

impl Etcd {
    /// Starts one in `dir`, if this machine has it.
    pub(crate) fn start(dir: &Path) -> Option<Etcd> {
        let there =
            Command::new("etcd").arg("--version").output().is_ok_and(|output| output.status.success());
        if !(there || skip(Need::Programs, "no etcd")) {
            return None;
        }
        let mut etcd = Etcd { dir: dir.join("etcd"), port: free_port(), process: None };
        etcd.run();
        Some(etcd)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn run(&mut self) {
        let log = File::options().create(true).append(true).open(self.dir.with_extension("log")).unwrap();
        let (url, peers) = (self.url(), format!("http://127.0.0.1:{}", free_port()));
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(&self.dir).args([
            "--listen-client-urls",
            &url,
            "--advertise-client-urls",
            &url,
        ]);
        command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
        command.args(["--initial-cluster", &format!("default={peers}")]);
        // Distributions name others in the environment.
        let child = command.env_clear().stdout(Stdio::null()).stderr(Stdio::from(log)).spawn().unwrap();
        self.process = Some(Running(child));
    }

    pub(crate) fn kill(&mut self) {
        self.process = None;
    }
}

/// A folder for all of it.
pub(crate) fn folder() -> Workdir {
    Workdir::create().unwrap()
}
