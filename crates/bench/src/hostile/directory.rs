//! Strangers with thousands of connections from one /48 to a directory: its memory, and how soon others are answered and have a new
//! list.

mod crowd;

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use strait_keying::directory::{Answer, Certificate, Question, REVOKED_MAX};
use strait_lab::measure::{RunValues, settle};
use strait_node::directory::DirectoryConnection;
use strait_testbed::attack::open_many_files;
use strait_testbed::{LinkSpec, Namespace, WireLink, interrupt};

use crate::echo::within;
use crate::error::Error;
use crate::files::watched;
use crate::report::{BenchSection, progress};
use crate::sessionless::{Fleet, FleetStore, Heard, certificates, publish, watch};
use crate::stage::BenchSetup;
use crate::target::Target;
use crowd::CrowdKind;

/// MiB of the directory's process at most; seconds of a look-up, and until one that watches has a new list.
const MEMORY: Target = Target::AtMost(64.0);
const LOOK_UP: Target = Target::AtMost(1.0);
const PUBLISHED: Target = Target::AtMost(2.0);
/// Connections of strangers at once.
const CONNECTIONS: usize = 4096;
/// Files of this process that are no connections of strangers.
const OTHER_FILES: u64 = 500;
/// Certificates that are there, of which one is looked up.
const CERTIFICATES: u32 = 100;
/// The first serial number that is revoked: behind those of all certificates. A list has as many as it can.
const REVOKED: u64 = 1 << 32;
/// Between two look-ups, and how many are made undisturbed.
const PAUSE: Duration = Duration::from_millis(100);
const ALONE: usize = 20;
/// The time in which strangers get as many connections as they can.
const BEGIN: Duration = Duration::from_secs(3);
/// The time that an honest step may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a page, which the kernel counts memory of sockets in.
const PAGE: f64 = 4096.0;
const COLUMNS: [&str; 8] = [
    "files open",
    "memory, MiB",
    "of sockets, MiB",
    "look-up alone, ms",
    "beside, ms",
    "the slowest, ms",
    "list alone, s",
    "beside, s",
];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, seconds) = setting.effort.pick((3, 15), (1, 3));
    let files = open_many_files(CONNECTIONS as u64 + OTHER_FILES).map_err(Error::doing("open many files"))?;
    let most = usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(CONNECTIONS);
    let connections = most.min(CONNECTIONS);
    let title = format!(
        "{connections} connections of strangers with one /48 to a directory with a list of {REVOKED_MAX} serial numbers; look-ups from \
         another network over connections of their own, alone and for {seconds} s beside them, then a new list; {runs} runs, median \
         (min-max)"
    );
    let mut section = BenchSection::new("hostile: directory", title, &COLUMNS);
    section.notes.push(
        "memory is VmHWM of the directory's process; of sockets: what TCP of the whole machine has more than before".to_owned(),
    );
    section.notes.push(format!("a look-up or a list that fails counts as {} s", PATIENCE.as_secs()));
    let stage = DirectoryStage::set(connections)?;
    let mut cells: [[RunValues; COLUMNS.len()]; CrowdKind::ALL.len()] = Default::default();
    for run in 1..=runs {
        for (kind, cells) in CrowdKind::ALL.into_iter().zip(&mut cells) {
            section.before.push(settle()?);
            let values = stage.measure(setting, kind, Duration::from_secs(seconds))?;
            progress("hostile", run, kind.name(), values[1], "MiB of the directory");
            cells.iter_mut().zip(values).for_each(|(runs, value)| runs.push(value));
        }
    }
    for (kind, cells) in CrowdKind::ALL.into_iter().zip(cells) {
        let name = kind.name();
        section.judge(format!("{name}: memory, MiB"), cells[1].clone(), MEMORY);
        section.judge(format!("{name}: the slowest look-up, s"), cells[5].map(|it| it / 1e3), LOOK_UP);
        section.judge(format!("{name}: until a new list is there, s"), cells[7].clone(), PUBLISHED);
        section.row(name, cells);
    }
    Ok(section)
}

/// A directory's host, and links to it from strangers and from an honest node.
struct DirectoryStage {
    strangers: WireLink,
    honest: WireLink,
    connections: usize,
}

impl DirectoryStage {
    fn set(connections: usize) -> Result<DirectoryStage, Error> {
        let host = Namespace::create("directory")?;
        let join =
            |name, number| WireLink::join(&Namespace::create(name)?, &host, number, LinkSpec::unshaped());
        let [strangers, honest] = [join("strangers", 1)?, join("honest", 2)?];
        crowd::settle_at(&strangers)?;
        Ok(DirectoryStage { strangers, honest, connections })
    }

    /// One crowd, before a new directory; a value a column.
    fn measure(
        &self,
        setting: &BenchSetup,
        kind: CrowdKind,
        window: Duration,
    ) -> Result<[f64; COLUMNS.len()], Error> {
        let place = (&self.strangers.b.host, IpAddr::V6(Ipv6Addr::UNSPECIFIED));
        Fleet::on(place, setting, FleetStore::Embedded, |fleet| {
            let all = certificates(CERTIFICATES)?;
            fleet.put(&all)?;
            let honest = HonestNode { stage: self, fleet, certificate: &all[0] };
            let roots = [fleet.asked().pid().into_iter().collect::<BTreeSet<u32>>()].map(Mutex::new);
            let (measured, [peaks]) = watched(&roots, || honest.beside(kind, window));
            let mut values = measured?;
            values[1] = peaks.largest();
            Ok(values)
        })
    }

    /// The address of a directory over a link.
    fn server(&self, link: &WireLink, fleet: &Fleet) -> Result<SocketAddr, Error> {
        let listens = fleet.asked().server().parse::<SocketAddr>();
        let none = |_| Error::Silent { what: "a port", way: "a directory".to_owned() };
        Ok(SocketAddr::new(link.b.v6.into(), listens.map_err(none)?.port()))
    }
}

/// A node of another network.
struct HonestNode<'a> {
    stage: &'a DirectoryStage,
    fleet: &'a Fleet,
    certificate: &'a Certificate,
}

impl HonestNode<'_> {
    /// Looks up and publishes alone, then beside a crowd; memory is left open.
    fn beside(&self, kind: CrowdKind, window: Duration) -> Result<[f64; COLUMNS.len()], Error> {
        let (say, hear) = channel();
        let mut watching = self.open()?;
        let socket = watching.socket().map_err(Error::doing("watch a directory"))?;
        watching.say(&Question::Watch { certificates: false }).map_err(Error::doing("watch a directory"))?;
        let authority = self.fleet.authority.public();
        std::thread::scope(|scope| {
            scope.spawn(move || watch(watching, &authority, &say));
            let measured = self.both(kind, window, &hear);
            // The thread ends with its connection.
            let _ = socket.shutdown(std::net::Shutdown::Both);
            measured
        })
    }

    fn both(
        &self,
        kind: CrowdKind,
        window: Duration,
        hear: &Receiver<Heard>,
    ) -> Result<[f64; COLUMNS.len()], Error> {
        let mut alone = Vec::new();
        let listed = [self.publish(1, hear)?, self.publish(2, hear)?];
        for _ in 0..ALONE {
            alone.push(self.look_up());
            interrupt::pause(PAUSE)?;
        }
        let (stage, sockets) = (self.stage, socket_memory());
        let to = stage.server(&stage.strangers, self.fleet)?;
        let crowd = crowd::start(kind, &stage.strangers, to, stage.connections);
        interrupt::pause(BEGIN)?;
        let (mut beside, mut most, begun) = (Vec::new(), [0.0_f64; 2], Instant::now());
        while begun.elapsed() < window {
            beside.push(self.look_up());
            let seen = [self.files(), socket_memory() - sockets];
            most = [most[0].max(seen[0]), most[1].max(seen[1])];
            interrupt::pause(PAUSE)?;
        }
        let published = self.publish(3, hear).unwrap_or(PATIENCE.as_secs_f64());
        drop(crowd);
        let slowest = within(&mut beside, 100);
        Ok([
            most[0],
            f64::NAN,
            most[1],
            within(&mut alone, 50),
            within(&mut beside, 50),
            slowest,
            listed[1],
            published,
        ])
    }

    /// Seconds until one that watches has the list of this number.
    fn publish(&self, number: u64, hear: &Receiver<Heard>) -> Result<f64, Error> {
        let revoked = REVOKED..=REVOKED + REVOKED_MAX as u64 - 1;
        publish((&self.fleet.authority, number, revoked), || self.open(), (1, hear))
    }

    fn open(&self) -> Result<DirectoryConnection, Error> {
        let link = &self.stage.honest;
        let server = self.stage.server(link, self.fleet)?.to_string();
        Ok(link.a.host.run("reach a directory", || DirectoryConnection::open(&server, PATIENCE))?)
    }

    /// Milliseconds of a look-up over a connection of its own; without the right answer, all the time that it may take.
    fn look_up(&self) -> f64 {
        let begun = Instant::now();
        let question = Question::Find(self.certificate.key_name());
        let answer = self.open().ok().and_then(|mut connection| connection.ask(&question).ok());
        let is_right = answer == Some(Answer::Certificate(self.certificate.as_bytes().into()));
        (if is_right { begun.elapsed() } else { PATIENCE }).as_secs_f64() * 1e3
    }

    /// Files that the directory has open: connections, and a few more.
    fn files(&self) -> f64 {
        let pid = self.fleet.asked().pid().unwrap_or_default();
        fs::read_dir(format!("/proc/{pid}/fd")).map_or(f64::NAN, |found| found.count() as f64)
    }
}

/// MiB that TCP has for what is on its way or not read (proc(5), `/proc/net/sockstat`).
fn socket_memory() -> f64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let mut words = text.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default().split(' ');
    let pages = words.find(|word| *word == "mem").and_then(|_| words.next()?.parse::<f64>().ok());
    pages.map_or(f64::NAN, |pages| pages * PAGE / f64::from(1 << 20))
}
