//! Three hosts, a broker on the second beside an S3-compatible server, and one transfer between them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use strait_testbed::{DaemonProcess, EmulatedPath, Extra, Post, Relay, Transfer, Workdir, interrupt, paced};

use super::bucket::BucketProcess;
use super::way::BrokerWay;
use crate::age::AgeKey;
use crate::error::Error;
use crate::files::{
    BareStream, EndPeaks, ended_children, forget_peaks, make_durable, processor, same, wait, watched,
};
use crate::paths::ThinPath;
use crate::stage::BenchSetup;

/// How long a session may take, how long a transfer, and how long one of plain TCP may stand still.
const SESSION: Duration = Duration::from_secs(30);
pub(super) const TRANSFER: Duration = Duration::from_secs(1800);
const STANDSTILL: Duration = Duration::from_secs(60);
/// Until processes at the other ends have ended, too.
const ENDED: Duration = Duration::from_millis(300);
/// The names of the files that are put, and of the object that the pipe makes.
const NAMES: [&str; 3] = ["source", "inbox", "piped"];

/// Where the broker keeps objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BrokerStore {
    /// In a folder.
    Folder,
    /// In the bucket.
    Bucket,
}

/// What one transfer did and used.
#[derive(Clone, Debug)]
pub(super) struct BrokerRun {
    /// From the start of the command until it ended.
    pub(super) command: f64,
    /// From the start of the command until all is durable.
    pub(super) durable: f64,
    /// Bytes that crossed the link of the sender, or of the receiver that fetches, in Ethernet frames, both directions.
    pub(super) wire: u64,
    /// Processor seconds of the sender's processes, of the store's with the broker's, and of the receiver's; none for the kernel
    /// alone.
    pub(super) processor: Option<[f64; 3]>,
    /// Their memory.
    pub(super) peaks: Option<[EndPeaks; 3]>,
}

/// Hosts, daemons, the broker and the server. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct BrokerStage {
    // In the order in which they must go: daemons, server, hosts, folder.
    pub(super) sender: DaemonProcess,
    pub(super) receiver: DaemonProcess,
    pub(super) broker: DaemonProcess,
    bucket: BucketProcess,
    pub(super) post: Post,
    _relay: Option<(Relay, EmulatedPath)>,
    age: Result<AgeKey, String>,
    level: u8,
    store: BrokerStore,
    dir: Workdir,
    /// The path between the sender and the broker.
    pub(super) path: ThinPath,
}

impl BrokerStage {
    /// Over a path, of which the daemons are told the rate; the pipe compresses at `level`.
    pub(super) fn set(
        setting: &BenchSetup,
        path: ThinPath,
        store: BrokerStore,
        level: u8,
    ) -> Result<BrokerStage, Error> {
        let (hosts, relay) = path.hosts(1)?;
        let dir = Workdir::create()?;
        for name in [NAMES[0], NAMES[1]] {
            fs::create_dir(dir.path().join(name)).map_err(Error::doing("make a folder"))?;
        }
        let post = Post::beside(hosts, &setting.program, dir.path())?;
        let bucket = setting.program.with_file_name("strait-bucket");
        let bucket = BucketProcess::start(&bucket, &post.hosts.b, &dir.path().join("buckets"))?;
        let section = match store {
            BrokerStore::Folder => post.local_store(),
            BrokerStore::Bucket => bucket.section(post.broker.folder())?,
        };
        let broker = post.start_broker(&post.configure_broker(&section, "")?)?;
        let link = path.rate().map(|rate| paced(rate, rate)).unwrap_or_default();
        let extra = Extra { link: &link, ..Extra::default() };
        let sender = post.sender.start(&post.configure_sender("", extra)?, "run")?;
        let receiver = post.receiver.start(&post.configure_receiver("", Extra::default())?, "run")?;
        for daemon in [&sender, &receiver] {
            daemon.wait_for_session(post.broker.name(), SESSION)?;
        }
        let age = AgeKey::make(dir.path(), &["zstd", "curl"]);
        Ok(BrokerStage {
            sender,
            receiver,
            broker,
            bucket,
            post,
            _relay: relay,
            age,
            level,
            store,
            dir,
            path,
        })
    }

    /// Where a file is that is put.
    pub(super) fn source(&self, name: &str) -> PathBuf {
        self.dir.path().join(NAMES[0]).join(name)
    }

    /// Where it arrives.
    pub(super) fn inbox(&self, name: &str) -> PathBuf {
        self.dir.path().join(NAMES[1]).join(name)
    }

    /// Why a way cannot be measured here.
    pub(super) fn missing(&self, way: BrokerWay) -> Option<String> {
        let why = self.age.as_ref().err().filter(|_| way.is_pipe())?;
        Some(format!("{} is left out: {why}", way.name()))
    }

    /// Bytes of the object that the pipe made.
    pub(super) fn piped(&self) -> Result<u64, Error> {
        let found = fs::metadata(self.bucket.file(NAMES[2])).map_err(Error::doing("look at an object"))?;
        Ok(found.len())
    }

    /// Bytes of the broker's objects.
    pub(super) fn stored(&self) -> u64 {
        let store = match self.store {
            BrokerStore::Folder => self.post.broker.folder().join("store"),
            BrokerStore::Bucket => self.bucket.file("post"),
        };
        size(&store.join("contents"))
    }

    /// Moves a file one way. What is brought back was put by the way that belongs to it, and is compared.
    pub(super) fn transfer(&self, way: BrokerWay, name: &str) -> Result<BrokerRun, Error> {
        if matches!(way, BrokerWay::Tcp | BrokerWay::Quic) {
            return self.plain(way, name);
        }
        if way.is_back() {
            let _ = fs::remove_file(self.inbox(name));
        }
        let ours = !way.is_pipe();
        let near = if way.is_back() { &self.receiver } else { &self.sender };
        let store: BTreeSet<u32> = match (ours, self.store) {
            (true, BrokerStore::Folder) => [self.broker.pid()].into(),
            (true, BrokerStore::Bucket) => [self.broker.pid(), self.bucket.pid()].into(),
            (false, _) => [self.bucket.pid()].into(),
        };
        let near = ours.then(|| near.pid());
        near.iter().chain(&store).for_each(|pid| forget_peaks(*pid));
        let used = || {
            let command = ended_children() + near.map_or(0.0, processor);
            [command, store.iter().copied().map(processor).sum()]
        };
        let link = if way.is_back() { &self.post.link } else { &self.post.hosts.link };
        let (before, crossed) = (used(), link.traffic()?);
        let begin = Instant::now();
        let mut child = self.spawn(way, name)?;
        let roots = [near.into_iter().chain([child.id()]).collect(), store.clone()].map(Mutex::new);
        let (ended, [near_peaks, store_peaks]) = watched(&roots, || wait(&mut child, TRANSFER));
        let command = begin.elapsed().as_secs_f64();
        self.check(ended?, way)?;
        if way == BrokerWay::Pipe {
            make_durable(&self.bucket.file(NAMES[2])).map_err(Error::doing("make an object durable"))?;
        } else if way.is_back() {
            make_durable(&self.inbox(name)).map_err(Error::doing("make a file durable"))?;
        }
        let durable = begin.elapsed().as_secs_f64();
        interrupt::pause(ENDED)?;
        let after = used();
        let wire = link.traffic()?.since(crossed).bytes();
        if way.is_back() {
            self.compare(way, name)?;
        }
        let spent = [after[0] - before[0], after[1] - before[1]];
        let (processor, peaks) = if way.is_back() {
            ([0.0, spent[1], spent[0]], [EndPeaks::default(), store_peaks, near_peaks])
        } else {
            ([spent[0], spent[1], 0.0], [near_peaks, store_peaks, EndPeaks::default()])
        };
        Ok(BrokerRun { command, durable, wire, processor: Some(processor), peaks: Some(peaks) })
    }

    /// One TCP or QUIC stream of the same bytes to the broker's host.
    fn plain(&self, way: BrokerWay, name: &str) -> Result<BrokerRun, Error> {
        let content: Arc<[u8]> = fs::read(self.source(name)).map_err(Error::doing("read a file"))?.into();
        let crossed = self.post.hosts.link.traffic()?;
        let (from, to, address) = (&self.post.hosts.a, &self.post.hosts.b, self.post.hosts.address_of_b().0);
        let content = &content;
        let took = match way {
            BrokerWay::Quic => BareStream { from, to, address, content, patience: TRANSFER }.run()?,
            _ => Transfer { from, to, address, name, content, patience: STANDSTILL }.run(&mut |_| {})?,
        };
        let wire = self.post.hosts.link.traffic()?.since(crossed).bytes();
        let seconds = took.as_secs_f64();
        Ok(BrokerRun { command: seconds, durable: seconds, wire, processor: None, peaks: None })
    }

    fn spawn(&self, way: BrokerWay, name: &str) -> Result<Child, Error> {
        let mut command = self.command(way, name);
        let log = File::create(self.log()).map_err(Error::doing("make a log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().map_err(Error::doing(format!("start {}", way.name())))
    }

    fn command(&self, way: BrokerWay, name: &str) -> Command {
        let (source, inbox) = (self.source(name), self.inbox(name));
        let (broker, receiver) = (self.post.broker.name(), self.post.receiver.name());
        let reached = if way.is_back() { self.post.broker_for_receiver() } else { self.post.broker.outside };
        let url = self.bucket.url(reached.ip(), NAMES[2]);
        let (key, recipient) = match &self.age {
            Ok(age) => (age.file.as_path(), age.recipient.as_str()),
            Err(_) => (Path::new(""), ""),
        };
        match way {
            BrokerWay::Put => {
                let mut command = self.sender.command(&["put"]);
                command.arg(source).args([broker, "--to", receiver]);
                command
            }
            BrokerWay::Fetch => {
                let mut command = self.receiver.command(&["fetch", broker, "--into"]);
                command.arg(self.inbox(""));
                command
            }
            BrokerWay::Pipe => {
                let pipe = format!(
                    "zstd -{} -q -c \"$0\" | age -r \"$1\" | {} -T - \"$2\"",
                    self.level,
                    BucketProcess::curl()
                );
                let mut command = self.post.hosts.a.command("bash");
                command.args(["-o", "pipefail", "-c", &pipe]).arg(source).args([recipient, &url]);
                command
            }
            BrokerWay::PipeBack | BrokerWay::Tcp | BrokerWay::Quic => {
                let pipe =
                    format!("{} \"$2\" | age -d -i \"$1\" | zstd -d -q -c > \"$0\"", BucketProcess::curl());
                let mut command = self.post.receiver.host.command("bash");
                command.args(["-o", "pipefail", "-c", &pipe]).arg(inbox).arg(key).arg(url);
                command
            }
        }
    }

    pub(super) fn log(&self) -> PathBuf {
        self.dir.path().join("command.log")
    }

    /// The end of what a command and the daemons said.
    pub(super) fn said(&self) -> String {
        let said = fs::read_to_string(self.log()).unwrap_or_default();
        let logs = [&self.sender, &self.broker, &self.receiver].map(DaemonProcess::last_words);
        [said].into_iter().chain(logs).collect::<Vec<_>>().join("\n----\n")
    }

    /// Fails unless a command ended well.
    pub(super) fn check(&self, status: ExitStatus, way: BrokerWay) -> Result<(), Error> {
        if status.success() {
            return Ok(());
        }
        let host = if way.is_back() { &self.post.receiver.host } else { &self.post.hosts.a };
        let (command, host) = (way.name().to_owned(), host.name().to_owned());
        let failed =
            strait_testbed::Error::Command { command, host, status: status.to_string(), said: self.said() };
        Err(failed.into())
    }

    fn compare(&self, way: BrokerWay, name: &str) -> Result<(), Error> {
        let whole = same(&self.source(name), &self.inbox(name)).map_err(Error::doing("compare files"))?;
        let lost = || Error::Silent { what: "a file whose bytes are right", way: way.name().to_owned() };
        whole.then_some(()).ok_or_else(lost)
    }
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(of).sum()
}
