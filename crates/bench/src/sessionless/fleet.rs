//! Directories on a host of their own: one with its store alone, or two over one etcd, of which the second is asked.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use strait_keying::PrivateKey;
use strait_keying::directory::{Answer, Certificate, Question};
use strait_node::directory::{DirectoryConnection, DirectoryFailure};
use strait_testbed::directory::{DirectoryProcess, certificate};
use strait_testbed::outside::Etcd;
use strait_testbed::{Namespace, Workdir, interrupt, on_disk};

use crate::error::Error;
use crate::stage::BenchSetup;

/// Certificates that are on their way at once, as of `strait authority publish`.
const WINDOW: usize = 64;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Seconds for which certificates are good: longer than a benchmark.
const VALID: u64 = 24 * 3600;

/// Where a directory has its certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FleetStore {
    /// In a file of its own.
    Embedded,
    /// In etcd, and its file is a copy.
    Etcd,
}

impl FleetStore {
    pub(crate) const ALL: [FleetStore; 2] = [FleetStore::Embedded, FleetStore::Etcd];

    /// Its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            FleetStore::Embedded => "embedded",
            FleetStore::Etcd => "etcd",
        }
    }

    /// Why it is left out here, if it is.
    pub(crate) fn missing(self) -> Option<String> {
        (self == FleetStore::Etcd && !Etcd::is_here()).then(|| "etcd is left out: there is none".to_owned())
    }
}

/// Directories, and etcd. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Fleet {
    // In the order in which they must go.
    directories: Vec<DirectoryProcess>,
    _etcd: Option<Etcd>,
    pub(crate) authority: PrivateKey,
    dir: Workdir,
}

impl Fleet {
    /// Runs `work` on a new host, beside directories without certificates.
    pub(crate) fn with<T: Send>(
        setting: &BenchSetup,
        store: FleetStore,
        work: impl FnOnce(&Fleet) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        Fleet::on((&Namespace::create("fleet")?, Ipv4Addr::LOCALHOST.into()), setting, store, work)
    }

    /// The same on a host, where they listen at `address`.
    pub(crate) fn on<T: Send>(
        (host, address): (&Namespace, IpAddr),
        setting: &BenchSetup,
        store: FleetStore,
        work: impl FnOnce(&Fleet) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        let program = setting.program.with_file_name("strait-directory");
        if !program.is_file() {
            return Err(Error::NoProgram(program));
        }
        // Processes end with the thread that starts them.
        let worked = host.run("serve certificates", || {
            Ok(Fleet::set(&program, address, store).and_then(|fleet| {
                let done = work(&fleet);
                drop(fleet);
                done
            }))
        });
        worked?
    }

    fn set(program: &Path, address: IpAddr, store: FleetStore) -> Result<Fleet, Error> {
        let dir = Workdir::create()?;
        let authority = authority();
        let etcd = match store {
            FleetStore::Embedded => None,
            FleetStore::Etcd => Some(Etcd::start(dir.path(), None)?),
        };
        let more =
            etcd.as_ref().map(|etcd| format!("[etcd]\nurls = [\"{}\"]\n", etcd.url())).unwrap_or_default();
        let names: &[&str] = if etcd.is_some() { &["given", "asked"] } else { &["alone"] };
        let start = |name: &&str| {
            DirectoryProcess::start_at(address, program, dir.path(), (name, &authority.public(), &more))
        };
        let directories = names.iter().map(start).collect::<Result<_, _>>()?;
        Ok(Fleet { directories, _etcd: etcd, authority, dir })
    }

    /// The directory that is given certificates and lists.
    pub(crate) fn given(&self) -> &DirectoryProcess {
        &self.directories[0]
    }

    /// The directory that nodes ask: over etcd it is another one.
    pub(crate) fn asked(&self) -> &DirectoryProcess {
        &self.directories[self.directories.len() - 1]
    }

    /// Puts all, as `strait authority publish` does, when the directory takes them; says how long that took.
    pub(crate) fn put(&self, certificates: &[Certificate]) -> Result<Duration, Error> {
        let mut connection = self.given().open()?;
        let Some((first, rest)) = certificates.split_first() else { return Ok(Duration::ZERO) };
        let put = |one: &Certificate| Question::PutCertificate(one.as_bytes().into());
        let begun = Instant::now();
        // etcd listens before it can write.
        while let Err(error) = connection.ask(&put(first)) {
            if begun.elapsed() > PATIENCE {
                return Err(failed(error));
            }
            interrupt::pause(Duration::from_millis(100))?;
        }
        let begun = Instant::now();
        for some in rest.chunks(WINDOW) {
            interrupt::check()?;
            for one in some {
                connection.say(&put(one)).map_err(Error::doing("put a certificate"))?;
            }
            for _ in some {
                match connection.hear().map_err(failed)? {
                    Answer::Stored => {}
                    other => return Err(failed(io::Error::other(format!("{other:?}")).into())),
                }
            }
        }
        Ok(begun.elapsed())
    }

    /// Waits until the directory that is asked has this certificate.
    pub(crate) fn wait_for(&self, certificate: &Certificate) -> Result<(), Error> {
        let (mut connection, begun) = (self.asked().open()?, Instant::now());
        let question = Question::Find(certificate.key_name());
        while connection.ask(&question).map_err(failed)? == Answer::NotFound {
            if begun.elapsed() > PATIENCE {
                return Err(Error::Silent { what: "a certificate", way: "etcd".to_owned() });
            }
            interrupt::pause(Duration::from_millis(20))?;
        }
        Ok(())
    }

    /// MiB of memory that is the own one of the process that is asked.
    pub(crate) fn memory(&self) -> Result<f64, Error> {
        let pid = self.asked().pid().unwrap_or_default();
        let status = fs::read_to_string(format!("/proc/{pid}/status"));
        let status = status.map_err(Error::doing("read the status of a directory"))?;
        let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let own = own.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(own.unwrap_or(f64::NAN) / 1024.0)
    }

    /// MiB that its store, and etcd with its log of changes, take on the disk.
    pub(crate) fn stored(&self) -> Result<[f64; 2], Error> {
        let file = fs::metadata(self.asked().store()).map_err(Error::doing("look at a store"))?;
        Ok([file.len(), on_disk(&self.dir.path().join("etcd"))]
            .map(|bytes| bytes as f64 / f64::from(1 << 20)))
    }
}

/// An authority's key.
pub(crate) fn authority() -> PrivateKey {
    PrivateKey::generate(&[9; 32])
}

/// This host's clock, in seconds since 1970.
pub(crate) fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// So many certificates of the authority, with serial numbers from 1, made by two threads.
pub(crate) fn certificates(count: u32) -> Result<Vec<Certificate>, Error> {
    let (authority, until) = (authority(), unix() + VALID);
    let some = |numbers: std::ops::Range<u32>| {
        let make = |number: u32| certificate(&authority, u64::from(number) + 1, number, until);
        numbers
            .map(make)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| failed(io::Error::other(error).into()))
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| some(0..count / 2));
        let rest = some(count / 2..count)?;
        let mut all = first.join().unwrap_or_else(|_| Ok(Vec::new()))?;
        all.extend(rest);
        Ok(all)
    })
}

/// What a question to a directory failed by.
pub(crate) fn failed(error: DirectoryFailure) -> Error {
    Error::doing("ask a directory")(io::Error::other(error))
}

/// A connection of a node's.
pub(crate) fn open(server: &str) -> Result<DirectoryConnection, Error> {
    DirectoryConnection::open(server, PATIENCE).map_err(Error::doing("reach a directory"))
}
