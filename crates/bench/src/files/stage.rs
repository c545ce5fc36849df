//! Two hosts with a daemon each and an sshd beside them, and one transfer between them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use strait_testbed::outside::Sshd;
use strait_testbed::{
    DaemonProcess, EmulatedPath, Extra, Relay, Site, Transfer, TwoHosts, Workdir, interrupt, paced,
};

use super::bare_quic::BareStream;
use super::content::same;
use super::nncp::{Nncp, NncpPrograms};
use super::processes::{EndPeaks, ended_children, forget_peaks, processor, watched};
use super::way::{FileWay, make_durable, rsync_options, wait};
use crate::error::Error;
use crate::paths::ThinPath;
use crate::stage::{BenchSetup, MTU};

/// How long a session may take, how long a transfer, and how long one of plain TCP may stand still.
const SESSION: Duration = Duration::from_secs(30);
const TRANSFER: Duration = Duration::from_secs(1800);
const STANDSTILL: Duration = Duration::from_secs(60);
/// Until processes at the far end have ended, too.
const ENDED: Duration = Duration::from_millis(300);

/// What one transfer did and used.
#[derive(Clone, Debug)]
pub(super) struct FileRun {
    /// From the start of the command until the file is durable at the other end.
    pub(super) seconds: f64,
    /// Bytes that crossed the link in Ethernet frames, in each direction.
    pub(super) wire: [u64; 2],
    /// Processor seconds of both ends; none for the kernel alone.
    pub(super) processor: Option<[f64; 2]>,
    /// Memory of both ends.
    pub(super) peaks: Option<[EndPeaks; 2]>,
}

/// Hosts, daemons and sshd. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct FileStage {
    // In the order in which they must go: daemons, hosts, folder.
    pub(super) daemons: [DaemonProcess; 2],
    sshd: Result<Sshd, String>,
    nncp: Result<Nncp, String>,
    pub(super) sites: [Site; 2],
    _relay: Option<(Relay, EmulatedPath)>,
    pub(super) hosts: TwoHosts,
    dir: Workdir,
    /// The path between them.
    pub(super) path: ThinPath,
}

impl FileStage {
    /// Over a path; daemons are told its rate.
    pub(super) fn set(setting: &BenchSetup, path: ThinPath) -> Result<FileStage, Error> {
        FileStage::set_with(setting, path, "")
    }

    /// As [`FileStage::set`], with more lines in the nodes' sections.
    pub(super) fn set_with(setting: &BenchSetup, path: ThinPath, node: &str) -> Result<FileStage, Error> {
        setting.has_program()?;
        let (hosts, relay) = path.hosts(1)?;
        let dir = Workdir::create()?;
        for folder in ["source", "inbox"] {
            fs::create_dir(dir.path().join(folder)).map_err(Error::doing("make a folder"))?;
        }
        let sites = Site::pair(&setting.program, &hosts, dir.path())?;
        let daemons = start(&sites, path, &dir.path().join("inbox"), node)?;
        let sshd = setting.sshd(&hosts, &dir);
        let (nodes, inbox) = (dir.path().join("nncp"), dir.path().join("inbox"));
        let nncp = NncpPrograms::find(&setting.cache.with_file_name("nncp")).and_then(|programs| {
            let nncp = Nncp::start(programs, &hosts, hosts.address_of_b().0, (&nodes, &inbox));
            nncp.map_err(|error| error.to_string())
        });
        Ok(FileStage { daemons, sshd, nncp, sites, _relay: relay, hosts, dir, path })
    }

    fn address(&self) -> IpAddr {
        self.hosts.address_of_b().0
    }

    /// Where a file is that is sent.
    pub(super) fn source(&self, name: &str) -> PathBuf {
        self.dir.path().join("source").join(name)
    }

    /// Where it arrives.
    pub(super) fn inbox(&self, name: &str) -> PathBuf {
        self.dir.path().join("inbox").join(name)
    }

    /// The congestion control of programs that choose none, which a namespace cannot set to one that the system restricts.
    pub(super) fn congestion_control(&self) -> Result<String, Error> {
        let file = "/proc/sys/net/ipv4/tcp_congestion_control";
        let text = self.hosts.a.run("read the congestion control", || fs::read_to_string(file))?;
        Ok(format!("rsync, scp and ssh use TCP with {}, plain TCP has CUBIC", text.trim()))
    }

    /// Why a way cannot be measured here.
    pub(super) fn missing(&self, way: FileWay) -> Option<String> {
        let programs: &[&str] = match way {
            FileWay::Strait | FileWay::Tcp | FileWay::Quic => return None,
            FileWay::Nncp => {
                let why = self.nncp.as_ref().err()?;
                return Some(format!("{} is left out: {why}", way.name()));
            }
            FileWay::Rsync => &["ssh", "rsync"],
            FileWay::Scp => &["ssh", "scp"],
            FileWay::Zstd => &["ssh", "zstd"],
        };
        let lacking = programs.iter().find(|program| !strait_testbed::outside::has(program));
        let why = lacking.map(|program| format!("there is no {program}"));
        let why = why.or_else(|| self.sshd.as_ref().err().cloned())?;
        Some(format!("{} is left out: {why}", way.name()))
    }

    /// Moves `source(name)` one way to `inbox(name)`, which was prepared, and compares.
    pub(super) fn transfer(&self, way: FileWay, name: &str) -> Result<FileRun, Error> {
        if matches!(way, FileWay::Tcp | FileWay::Quic) {
            return self.plain(way, name);
        }
        let far = match (way, &self.sshd, &self.nncp) {
            (FileWay::Nncp, _, Ok(nncp)) => nncp.pid(),
            (FileWay::Strait, ..) | (_, Err(_), _) => self.daemons[1].pid(),
            (_, Ok(sshd), _) => sshd.pid(),
        };
        let near = (way == FileWay::Strait).then(|| self.daemons[0].pid());
        near.iter().chain([&far]).for_each(|pid| forget_peaks(*pid));
        let used = || [ended_children() + near.map_or(0.0, processor), processor(far)];
        let (before, crossed) = (used(), self.hosts.link.traffic()?);
        let begin = Instant::now();
        let mut child = self.spawn(way, name)?;
        let roots = [near.into_iter().chain([child.id()]).collect(), BTreeSet::from([far])].map(Mutex::new);
        let (ended, peaks) = watched(&roots, || wait(&mut child, TRANSFER));
        self.check(ended?, way)?;
        make_durable(&self.inbox(name)).map_err(Error::doing("make a file durable"))?;
        let seconds = begin.elapsed().as_secs_f64();
        interrupt::pause(ENDED)?;
        let after = used();
        let crossed = self.hosts.link.traffic()?.since(crossed);
        self.compare(way, name)?;
        Ok(FileRun {
            seconds,
            wire: [crossed.there.bytes, crossed.back.bytes],
            processor: Some([after[0] - before[0], after[1] - before[1]]),
            peaks: Some(peaks),
        })
    }

    /// One TCP or QUIC stream of the same bytes.
    fn plain(&self, way: FileWay, name: &str) -> Result<FileRun, Error> {
        let content: Arc<[u8]> = fs::read(self.source(name)).map_err(Error::doing("read a file"))?.into();
        let crossed = self.hosts.link.traffic()?;
        let (from, to, address) = (&self.hosts.a, &self.hosts.b, self.address());
        let content = &content;
        let took = match way {
            FileWay::Quic => BareStream { from, to, address, content, patience: TRANSFER }.run()?,
            _ => Transfer { from, to, address, name, content, patience: STANDSTILL }.run(&mut |_| {})?,
        };
        let seconds = took.as_secs_f64();
        let crossed = self.hosts.link.traffic()?.since(crossed);
        let wire = [crossed.there.bytes, crossed.back.bytes];
        Ok(FileRun { seconds, wire, processor: None, peaks: None })
    }

    /// Starts the command that moves `source(name)`.
    pub(super) fn spawn(&self, way: FileWay, name: &str) -> Result<Child, Error> {
        let mut command = self.command(way, name);
        let log = File::create(self.log()).map_err(Error::doing("make a log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().map_err(Error::doing(format!("start {}", way.name())))
    }

    fn command(&self, way: FileWay, name: &str) -> Command {
        let (options, user) = match &self.sshd {
            Ok(sshd) => (sshd.options(), sshd.user()),
            Err(_) => (Vec::new(), ""),
        };
        let (source, host) = (self.source(name), format!("{user}@{}", self.address()));
        let inbox = self.inbox("");
        let place = format!("{host}:{}", inbox.display());
        let near = &self.hosts.a;
        let mut command = match way {
            FileWay::Strait | FileWay::Tcp | FileWay::Quic => self.daemons[0].command(&["send"]),
            FileWay::Rsync => near.command("rsync"),
            FileWay::Scp => near.command("scp"),
            FileWay::Zstd | FileWay::Nncp => near.command("sh"),
        };
        match way {
            FileWay::Strait | FileWay::Tcp | FileWay::Quic => command.arg(source).arg("site-b:inbox"),
            FileWay::Rsync => command.args(rsync_options(&options)).arg(source).arg(place),
            FileWay::Scp => command.args(options).arg("-r").arg(source).arg(place),
            FileWay::Zstd => {
                let there = format!("zstd -d -q -c > '{}'", self.inbox(name).display());
                let script = "zstd -3 -q -c \"$0\" | ssh \"$@\"";
                command.args(["-c", script]).arg(source).args(options).args([host, there])
            }
            FileWay::Nncp => match &self.nncp {
                Ok(nncp) => nncp.send(&mut command, &source, &self.inbox(name)),
                Err(_) => &mut command,
            },
        };
        command
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("command.log")
    }

    /// The end of what a command and the daemons said.
    pub(super) fn said(&self) -> String {
        let said = fs::read_to_string(self.log()).unwrap_or_default();
        let logs = self.daemons.iter().map(DaemonProcess::last_words);
        [said].into_iter().chain(logs).collect::<Vec<_>>().join("\n----\n")
    }

    /// Fails unless a command ended well.
    pub(super) fn check(&self, status: ExitStatus, way: FileWay) -> Result<(), Error> {
        if status.success() {
            return Ok(());
        }
        let command = way.name().to_owned();
        let host = self.hosts.a.name().to_owned();
        let failed =
            strait_testbed::Error::Command { command, host, status: status.to_string(), said: self.said() };
        Err(failed.into())
    }

    /// Fails unless what arrived is what was sent.
    pub(super) fn compare(&self, way: FileWay, name: &str) -> Result<(), Error> {
        let whole = same(&self.source(name), &self.inbox(name)).map_err(Error::doing("compare files"))?;
        let lost = || Error::Silent { what: "a file whose bytes are right", way: way.name().to_owned() };
        whole.then_some(()).ok_or_else(lost)
    }

    /// Removes what arrived.
    pub(super) fn clear(&self, name: &str) -> Result<(), Error> {
        let path = self.inbox(name);
        let done = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match done {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::doing("remove what arrived")(error))
            }
            _ => Ok(()),
        }
    }
}

/// The daemons of both sites; the second has a folder that the first may write.
fn start(sites: &[Site; 2], path: ThinPath, inbox: &Path, node: &str) -> Result<[DaemonProcess; 2], Error> {
    let link = path.rate().map(|rate| paced(rate, rate)).unwrap_or_default();
    let node = format!("mtu = {MTU}\n{node}");
    let [a, b] = sites;
    let folder = format!(
        "[[folder]]\nname = \"inbox\"\npath = \"{}\"\nread = [\"site-a\"]\nwrite = [\"site-a\"]\nowner = \"root\"\n",
        inbox.display()
    );
    let one = |site: &Site, peer: &Site, sections: &str| {
        let extra = Extra { node: &node, link: &link, sections, ..Extra::default() };
        site.start(&site.configure("files", &[peer], extra)?, "run")
    };
    let daemons = [one(a, b, "")?, one(b, a, &folder)?];
    for (daemon, peer) in daemons.iter().zip([b, a]) {
        daemon.wait_for_session(peer.name(), SESSION)?;
    }
    Ok(daemons)
}
