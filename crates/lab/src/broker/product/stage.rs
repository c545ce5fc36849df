//! Three hosts with a node each, and a file that goes from the first to the broker on the second, and from there to the third.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use strait_scheduler::Rate;
use strait_testbed::{DaemonProcess, Extra, LinkSpec, Post, TwoHosts, Workdir, interrupt, paced};

use super::super::chain::Chain;
use super::super::layer::Sink;
use super::super::payload::BrokerPayload;
use super::super::run::pump;
use super::put_file::PutFile;
use crate::error::Error;

/// The time that a session may take: its handshake takes a second at 0.1 Mbit/s.
const SESSION: Duration = Duration::from_secs(60);
/// The time that a command may take: ten times what the longest file takes over the slow network.
const COMMAND: Duration = Duration::from_secs(300);
/// The time between two looks at a command: a thousandth of what the shortest takes at most.
const TICK: Duration = Duration::from_micros(200);
/// The folders of files that are put and fetched.
const SOURCE: &str = "source";
const INBOX: &str = "inbox";
/// The files that are there from the beginning.
const PAYLOAD: &str = "payload";
const RANDOM: &str = "random";
/// The file that the lab's layers make of the payload.
const LAYERS: &str = "layers";

/// The seconds and bytes of one file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MovedFile {
    /// Seconds of the lab's layers and of `strait put`.
    pub(super) put: f64,
    /// Seconds of `strait fetch`.
    pub(super) fetch: f64,
    /// Bytes from the sender to the broker, in Ethernet frames.
    pub(super) wire: u64,
    /// Bytes of the object at the broker.
    pub(super) stored: u64,
}

/// Hosts, links, daemons and files. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct ProductStage {
    // In the order in which they must go: daemons, hosts, folder.
    sender: DaemonProcess,
    receiver: DaemonProcess,
    broker: DaemonProcess,
    post: Post,
    dir: Workdir,
}

impl ProductStage {
    /// Hosts with links of `rate`, which daemons know, and files of `len` bytes.
    pub(super) fn set(program: &Path, rate: Option<Rate>, len: usize) -> Result<ProductStage, Error> {
        let spec = rate.map_or(LinkSpec::unshaped(), LinkSpec::thin);
        let link = rate.map(|rate| paced(rate, rate)).unwrap_or_default();
        let dir = Workdir::create()?;
        let post = Post::joined(TwoHosts::direct(spec)?, spec, program, dir.path())?;
        let section = post.local_store();
        let broker = post.start_broker(&post.configure_broker(&section, &format!("\n[link]\n{link}"))?)?;
        let extra = Extra { link: &link, ..Extra::default() };
        let sender = post.sender.start(&post.configure_sender("", extra)?, "run")?;
        let receiver = post.receiver.start(&post.configure_receiver("", extra)?, "run")?;
        for daemon in [&sender, &receiver] {
            daemon.wait_for_session(post.broker.name(), SESSION)?;
        }
        let stage = ProductStage { sender, receiver, broker, post, dir };
        stage.write_files(len)?;
        Ok(stage)
    }

    fn write_files(&self, len: usize) -> Result<(), Error> {
        let [counts, _, random] = BrokerPayload::generated(len);
        let write = || {
            [SOURCE, INBOX].iter().try_for_each(|name| fs::create_dir(self.dir.path().join(name)))?;
            fs::write(self.source(PAYLOAD), counts.bytes)?;
            fs::write(self.source(RANDOM), random.bytes)
        };
        write().map_err(Error::doing(format!("write files into {}", self.dir.path().display())))
    }

    fn source(&self, name: &str) -> PathBuf {
        self.dir.path().join(SOURCE).join(name)
    }

    /// Puts a file, fetches it at the other end, and compares.
    pub(super) fn moved(&self, file: PutFile) -> Result<MovedFile, Error> {
        // The folder and all processes are to be gone after a signal, too.
        interrupt::check()?;
        let begin = Instant::now();
        let name = self.made(file)?;
        let made = begin.elapsed().as_secs_f64();
        let (broker, receiver) = (self.post.broker.name(), self.post.receiver.name());
        let mut put = self.sender.command(&["put", "--json", "--exact-size"]);
        put.arg(self.source(name)).args([broker, "--to", receiver]);
        let mut fetch = self.receiver.command(&["fetch", broker, "--into"]);
        fetch.arg(self.dir.path().join(INBOX));
        let crossed = self.post.hosts.link.traffic()?;
        let (seconds, said) = self.ended(put, "strait put")?;
        let wire = self.post.hosts.link.traffic()?.since(crossed).there.bytes;
        let (fetched, _) = self.ended(fetch, "strait fetch")?;
        self.compare(name)?;
        let stored = stored(&said).ok_or_else(|| self.failed("strait put", "no size of what is stored"))?;
        Ok(MovedFile { put: made + seconds, fetch: fetched, wire, stored })
    }

    /// Makes a file, if it is not there yet, and returns its name.
    fn made(&self, file: PutFile) -> Result<&'static str, Error> {
        match file {
            PutFile::Payload => Ok(PAYLOAD),
            PutFile::Random => Ok(RANDOM),
            PutFile::Layers(chain) => {
                let path = self.source(LAYERS);
                let layered = layered(chain, &self.source(PAYLOAD), &path);
                layered.map_err(Error::doing(format!("write {}", path.display())))?;
                Ok(LAYERS)
            }
        }
    }

    /// Fails unless a file arrived as it left; it is removed for the next one.
    fn compare(&self, name: &str) -> Result<(), Error> {
        let (source, arrived) = (self.source(name), self.dir.path().join(INBOX).join(name));
        let read = |path: &Path| fs::read(path).map_err(Error::doing(format!("read {}", path.display())));
        let (sent, came) = (read(&source)?, read(&arrived)?);
        fs::remove_file(&arrived).map_err(Error::doing(format!("remove {}", arrived.display())))?;
        if sent == came {
            return Ok(());
        }
        let at = sent.iter().zip(&came).position(|(sent, came)| sent != came);
        let at = at.unwrap_or(sent.len().min(came.len()));
        Err(strait_testbed::Error::Damaged { file: name.to_owned(), at }.into())
    }

    /// Runs a command to its end, which has to be good; gives its seconds and what it printed.
    fn ended(&self, mut command: Command, name: &'static str) -> Result<(f64, String), Error> {
        let [out, log] = ["command.out", "command.log"].map(|name| self.dir.path().join(name));
        let doing = || Error::doing(format!("run {name}"));
        command.stdout(File::create(&out).map_err(doing())?).stderr(File::create(&log).map_err(doing())?);
        // Its own process group: what is typed on the terminal reaches only this program, which ends it.
        command.process_group(0);
        let begin = Instant::now();
        let mut running = RunningCommand(command.spawn().map_err(doing())?);
        let status = running.wait(name)?;
        let seconds = begin.elapsed().as_secs_f64();
        if !status.success() {
            return Err(self.failed(name, &status.to_string()));
        }
        Ok((seconds, fs::read_to_string(out).map_err(doing())?))
    }

    /// A command that ended otherwise than it should, with what it and the daemons said.
    fn failed(&self, name: &str, status: &str) -> Error {
        let said = fs::read_to_string(self.dir.path().join("command.log")).unwrap_or_default();
        let logs = [&self.sender, &self.broker, &self.receiver].map(DaemonProcess::last_words);
        let said = [said].into_iter().chain(logs).collect::<Vec<_>>().join("\n----\n");
        let host = self.post.hosts.a.name().to_owned();
        strait_testbed::Error::Command { command: name.to_owned(), host, status: status.to_owned(), said }
            .into()
    }
}

/// A command that is killed when it is dropped before it has ended.
struct RunningCommand(Child);

impl RunningCommand {
    fn wait(&mut self, name: &'static str) -> Result<ExitStatus, Error> {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().map_err(Error::doing(format!("wait for {name}")))? {
                return Ok(status);
            }
            interrupt::check()?;
            if begin.elapsed() > COMMAND {
                let what = format!("{name} had not ended");
                let slow = strait_testbed::Error::TooSlow { what, waited: COMMAND, said: String::new() };
                return Err(slow.into());
            }
            thread::sleep(TICK);
        }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes what the layers make of a file.
fn layered(chain: Chain, from: &Path, to: &Path) -> std::io::Result<()> {
    pump(File::open(from)?, chain.sender(Sink::File(File::create(to)?, 0))?).map(drop)
}

/// Bytes at the broker by the events that `strait put --json` prints: contents and manifest.
pub(super) fn stored(events: &str) -> Option<u64> {
    let last: Value = serde_json::from_str(events.lines().last()?).ok()?;
    Some(last["contents_bytes"].as_u64()? + last["manifest_bytes"].as_u64()?)
}
