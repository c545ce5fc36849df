//! A sender with a quota that puts what costs a broker most: the disk and the inboxes that it takes, and what another's fetch keeps of
//! its rate.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strait_clock::Random;
use strait_keying::PublicKey;
use strait_lab::measure::{RunValues, settle};
use strait_node::client::{OpenedStream, StreamOptions, open_stream_at};
use strait_testbed::attack::Hoard;
use strait_testbed::{
    DaemonProcess, Extra, LinkSpec, Post, PostClient, Site, TwoHosts, Workdir, on_disk, paced,
};
use strait_transfer::broker::client::{BrokerClient, BrokerError};
use strait_transfer::broker::message::{BrokerRequest, LetterBox};
use strait_transfer::broker::{BROKER, places};

use super::attackers::Attackers;
use crate::error::Error;
use crate::files::{same, wait};
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// MB on the disk for a quota of 1 MB, names in an inbox, and a fetch's rate over its rate alone.
const DISK: Target = Target::AtMost(1.1);
const NAMES: Target = Target::AtMost(1000.0);
const KEPT: Target = Target::AtLeast(0.8);
/// The hostile sender's part of the configuration; all others may put and fetch.
const ACCESS: &str =
    "[[broker.access]]\npeer = \"site-a\"\nquota_sent = \"1MB\"\n[[broker.access]]\npeer = \"*\"\n";
/// The rate of the links of the hostile sender and of the receiver, in Mbit/s, which both daemons know.
const LINK: f64 = 10.0;
/// Streams on which it goes on to put, and on which it asks for lists that it does not read.
const PUTTING: u64 = 16;
const ASKING: u64 = 16;
/// Lists in one go.
const LISTS: usize = 16;
/// Numbers of objects between those of two streams, and of two floods.
const APART: u64 = 1 << 32;
/// The time in which all of its streams begin, the time for which answers stay unread, and a pause where it may open no stream.
const BEGIN: Duration = Duration::from_secs(1);
const UNREAD: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);
/// The time that a session may take, and the time of a transfer.
const SESSION: Duration = Duration::from_secs(30);
const TRANSFER: Duration = Duration::from_secs(600);
const COLUMNS: [&str; 7] = [
    "put",
    "MB on the disk",
    "names in an inbox",
    "audit log, MB",
    "fetch alone, Mbit/s",
    "beside, Mbit/s",
    "times",
];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (size, runs) = setting.effort.pick((5_000_000, 5), (1_000_000, 1));
    let title = format!(
        "a sender at {LINK} Mbit/s with a quota of 1 MB fills a store in a folder, then goes on to put on {PUTTING} streams and asks \
         for lists on {ASKING} without reading them; a fetch of {:.1} random MB of another at {LINK} Mbit/s before and beside that, a \
         new broker each; {runs} runs, median (min-max)",
        f64::from(size) / 1e6
    );
    let mut section = BenchSection::new("hostile: broker", title, &COLUMNS);
    section.notes.push(
        "on the disk, as du has it: the store and uploads in the spool, without the audit log".to_owned(),
    );
    let mut cells: [[RunValues; COLUMNS.len() - 1]; Hoard::ALL.len()] = Default::default();
    for run in 1..=runs {
        for (hoard, cells) in Hoard::ALL.into_iter().zip(&mut cells) {
            section.before.push(settle()?);
            let values = HoardStage::set(setting, size)?.measure(hoard)?;
            progress("hostile", run, hoard.name(), values[5] / values[4], "times the fetch alone");
            cells.iter_mut().zip(values).for_each(|(runs, value)| runs.push(value));
        }
    }
    for (hoard, cells) in Hoard::ALL.into_iter().zip(cells) {
        let name = hoard.name();
        let times = cells[5].over(&cells[4]);
        section.judge(format!("{name}: MB on the disk"), cells[1].clone(), DISK);
        section.judge(format!("{name}: names in an inbox"), cells[2].clone(), NAMES);
        section.judge(format!("{name}: a fetch's rate, times that alone"), times.clone(), KEPT);
        section.row(name, cells.into_iter().chain([times]));
    }
    Ok(section)
}

/// A broker, a hostile sender and a receiver with a daemon each, and an honest sender. Dropped, it leaves nothing behind.
struct HoardStage {
    // In the order in which they must go: daemons, hosts, folder.
    hostile: DaemonProcess,
    receiver: DaemonProcess,
    _broker: DaemonProcess,
    honest: [PostClient; 1],
    /// All that the hostile sender can put for, in ascending order.
    keys: Vec<PublicKey>,
    size: f64,
    post: Post,
    dir: Workdir,
}

impl HoardStage {
    fn set(setting: &BenchSetup, size: u32) -> Result<HoardStage, Error> {
        setting.has_program()?;
        let dir = Workdir::create()?;
        let post = Post::beside(TwoHosts::direct(LinkSpec::unshaped())?, &setting.program, dir.path())?;
        let mut random = Random::new(1);
        let content: Vec<u8> = (0..size / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        let honest = [PostClient::create(&post, dir.path(), 1, &content, "")?];
        let senders = [&post.sender, honest[0].site()];
        let [hostile, other] = senders;
        let sites = [hostile, other, &post.receiver];
        let config = post.configure_broker_for(&sites, &post.local_store(), ACCESS)?;
        let broker = post.start_broker(&config)?;
        let link = paced(rate(LINK), rate(LINK));
        let extra = Extra { link: &link, ..Extra::default() };
        let receiver = post.receiver.start(&post.configure_receiver_of(&senders, extra)?, "run")?;
        let hostile = post.sender.start(&post.configure_sender("", extra)?, "run")?;
        for daemon in [&hostile, &receiver] {
            daemon.wait_for_session(post.broker.name(), SESSION)?;
        }
        let key = |site: &&Site| site.public_key().parse().ok();
        let mut keys: Vec<PublicKey> = sites[1..].iter().filter_map(key).collect();
        keys.sort_unstable();
        let inbox = dir.path().join("inbox");
        fs::create_dir(&inbox).map_err(Error::doing("make a folder"))?;
        let size = f64::from(size);
        Ok(HoardStage { hostile, receiver, _broker: broker, honest, keys, size, post, dir })
    }

    /// A value a column but the last.
    fn measure(mut self, hoard: Hoard) -> Result<[f64; COLUMNS.len() - 1], Error> {
        // What a first command takes besides is not measured.
        self.fetch()?;
        let alone = self.fetched()?;
        let before = self.taken();
        let mut put = 0;
        for flood in 0..2 {
            put += self.flood(hoard, flood * APART)?;
        }
        let taken = self.taken().saturating_sub(before);
        let names = self.keys.iter().map(|key| self.names(key)).max().unwrap_or(0);
        self.put()?;
        let socket = self.socket();
        let streams = (0..PUTTING + ASKING).map(|stream| {
            let (socket, keys) = (socket.clone(), self.keys.clone());
            move |ended: &AtomicBool| go_on(&socket, stream, hoard, &keys, ended)
        });
        let attackers = Attackers::start(streams);
        thread::sleep(BEGIN);
        let beside = self.fetch_it();
        drop(attackers);
        let audit = self.spool().join("audit.jsonl");
        let audit = fs::metadata(audit).map_or(f64::NAN, |found| found.len() as f64 / 1e6);
        Ok([put as f64, taken as f64 / 1e6, names as f64, audit, alone, beside?])
    }

    fn socket(&self) -> PathBuf {
        self.hostile.log().with_file_name("strait0.sock")
    }

    fn spool(&self) -> PathBuf {
        self.post.broker.folder().join("spool")
    }

    fn store(&self) -> PathBuf {
        self.post.broker.folder().join("store")
    }

    /// Bytes on the disk of the store, and of uploads.
    fn taken(&self) -> u64 {
        let spooled = fs::read_dir(self.spool()).into_iter().flatten().flatten().map(|entry| entry.path());
        on_disk(&self.store()) + spooled.filter(|path| path.is_dir()).map(|path| on_disk(&path)).sum::<u64>()
    }

    fn names(&self, receiver: &PublicKey) -> usize {
        fs::read_dir(self.store().join(places::inbox(receiver))).map_or(0, Iterator::count)
    }

    /// Fills what the quota leaves; how many objects or uploads that were.
    fn flood(&self, hoard: Hoard, from: u64) -> Result<u64, Error> {
        let failed = |error| Error::doing("put at a broker")(std::io::Error::other(error));
        let opened = open(&self.socket()).map_err(Error::doing("reach a broker"))?;
        let mut client = BrokerClient::begin(&opened.stream, &opened.stream).map_err(failed)?;
        let (number, _) = hoard.flood(&mut client, from, &self.keys).map_err(failed)?;
        Ok(number - from)
    }

    /// Puts the honest file and fetches it; Mbit/s of the fetch.
    fn fetched(&mut self) -> Result<f64, Error> {
        self.put()?;
        self.fetch_it()
    }

    fn put(&mut self) -> Result<(), Error> {
        PostClient::put_all(&self.post, &mut self.honest, false, TRANSFER)?;
        let [honest] = &self.honest;
        if honest.is_acknowledged() {
            return Ok(());
        }
        Err(self.failed("strait put", honest.said()))
    }

    fn fetch_it(&self) -> Result<f64, Error> {
        let file = self.honest[0].file();
        let arrived = self.inbox().join(file.file_name().unwrap_or_default());
        let took = self.fetch()?;
        // Letters that cannot be opened make it fail in the end.
        if !same(file, &arrived).unwrap_or(false) {
            let said = fs::read_to_string(self.log()).unwrap_or_default();
            return Err(self.failed("strait fetch", said));
        }
        fs::remove_file(arrived).map_err(Error::doing("remove what arrived"))?;
        Ok(self.size * 8.0 / 1e6 / took.as_secs_f64())
    }

    fn fetch(&self) -> Result<Duration, Error> {
        let log = File::create(self.log()).map_err(Error::doing("make a log"))?;
        let mut command = self.receiver.command(&["fetch", self.post.broker.name(), "--into"]);
        command.arg(self.inbox()).stdout(Stdio::null()).stderr(log);
        let begun = Instant::now();
        let mut child = command.spawn().map_err(Error::doing("start strait"))?;
        wait(&mut child, TRANSFER)?;
        Ok(begun.elapsed())
    }

    fn inbox(&self) -> PathBuf {
        self.dir.path().join("inbox")
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("fetch.log")
    }

    fn failed(&self, command: &str, said: String) -> Error {
        let host = self.post.receiver.name().to_owned();
        let status = "it left a file behind".to_owned();
        strait_testbed::Error::Command { command: command.to_owned(), host, status, said }.into()
    }
}

/// A stream to the broker, behind its head: the service, and no name.
fn open(socket: &Path) -> std::io::Result<OpenedStream> {
    let options = StreamOptions::default();
    let mut opened = open_stream_at(socket, "site-b", options).map_err(std::io::Error::other)?;
    opened.stream.write_all(&[BROKER[0], BROKER[1], 0])?;
    Ok(opened)
}

/// Does the work of the stream with this number until the attack ends.
fn go_on(socket: &Path, stream: u64, hoard: Hoard, to: &[PublicKey], ended: &AtomicBool) {
    let mut number = (stream + 2) * APART;
    let put = |client: &mut BrokerClient<&UnixStream, &UnixStream>| {
        number += 1;
        hoard.put(client, number, to).map(drop)
    };
    let ask = |client: &mut BrokerClient<&UnixStream, &UnixStream>| {
        let boxes = [LetterBox::Sent, LetterBox::Inbox].into_iter().cycle().take(LISTS);
        let mut lists = boxes.map(|which| BrokerRequest::List { which, after: Vec::new() });
        lists.try_for_each(|list| client.say(&list))?;
        thread::sleep(UNREAD);
        // And again on another.
        Err(BrokerError::Closed)
    };
    if stream < PUTTING { on_streams(socket, ended, put) } else { on_streams(socket, ended, ask) }
}

/// Does something again and again on a stream, and opens another when that is over.
fn on_streams(
    socket: &Path,
    ended: &AtomicBool,
    mut each: impl FnMut(&mut BrokerClient<&UnixStream, &UnixStream>) -> Result<(), BrokerError>,
) {
    while !ended.load(Ordering::Relaxed) {
        if let Ok(opened) = open(socket) {
            // Nothing waits for much longer than the attack goes on.
            let _ = opened.stream.set_read_timeout(Some(UNREAD));
            let _ = opened.stream.set_write_timeout(Some(UNREAD));
            let client = BrokerClient::begin(&opened.stream, &opened.stream);
            let Ok(mut client) = client else { continue };
            while !ended.load(Ordering::Relaxed) && each(&mut client).is_ok() {}
        }
        thread::sleep(PAUSE);
    }
}
