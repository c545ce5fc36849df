//! A stream to a service of a peer: its files, or what it keeps as a broker.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use strait_model::BitRate;
use strait_node::client::{self, ClientError, OpenedStream};
use strait_node::logging::{FILTER_VARIABLE, QUIET_FILTER};
use strait_node::poll::unsent;
use strait_node::private_daemon::PrivateDaemon;
use strait_node::speed::MachineSpeed;
use strait_scheduler::Rate;
use strait_stream::StreamPriority;
use strait_stream::unit::UNIT_HEADER_LEN;
use strait_transfer::message::FaultReason;
use strait_transfer::session::{SILENCE, StreamEnds, TransferError};

use super::address::PeerPlace;
use super::limit::Limited;
use super::meter::{fault_text, fault_words};
use crate::failure::{Code, Failure};
use crate::flags::FilePriority;
use crate::running::CarryingNode;
use crate::silence::{self, AnswerLine};
use crate::status_line::StatusLine;
use crate::{configuration, running};

/// The first two bytes of a stream: the file service, and its version.
pub(super) const FILES: [u8; 2] = [1, 1];

/// The bytes of a write by which this end only shows, each minute, that it is there: a unit with a message without a body. The node takes
/// it whatever the peer does.
const IDLE_WRITE: usize = UNIT_HEADER_LEN + 2;

/// What a stream goes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamTarget<'a> {
    /// The peer's name in the configuration.
    pub(crate) peer: &'a str,
    /// The service, and its version.
    pub(crate) service: [u8; 2],
    /// What of the service is meant: a folder, at most 255 bytes.
    pub(crate) name: &'a [u8],
}

impl StreamTarget<'_> {
    /// The first bytes of a stream to it: the service, its version, and the name behind its length.
    fn head(self) -> Vec<u8> {
        let length = u8::try_from(self.name.len()).unwrap_or(u8::MAX);
        [&self.service[..], &[length], self.name].concat()
    }
}

/// A stream, and the node that carries it where none ran.
pub(crate) struct PeerStream {
    stream: UnixStream,
    /// The name of the peer.
    peer: String,
    link: Option<BitRate>,
    begun: Instant,
    /// The time at which the peer was heard, or took something, last: in milliseconds after that.
    sign: AtomicU64,
    /// Bytes of the stream that the node had not taken when it was last looked.
    left: AtomicU32,
    /// Whether the peer said anything.
    heard: AtomicBool,
    node: CarryingNode,
    _own: Option<PrivateDaemon>,
}

/// The reason for having no stream, or none any more.
pub(crate) struct NoStream {
    failure: Failure,
    /// The words for a peer that another time may be there.
    pub(crate) unreached: Option<&'static str>,
    /// True if another run of the same transfer has the peer's folder.
    pub(crate) is_busy: bool,
}

impl NoStream {
    /// The same of a transfer with a pipe at this end: what was cut off begins anew.
    pub(super) fn of_pipe(self, pipe: Option<&str>) -> NoStream {
        let cut = self.failure.number() == Code::Interrupted.number();
        let Some(pipe) = pipe.filter(|_| cut) else { return self };
        let remedy = format!("run the same command again; {pipe} cannot be resumed");
        NoStream { failure: self.failure.remedy(remedy), ..self }
    }

    fn asked(error: ClientError) -> NoStream {
        let unreached = matches!(error, ClientError::Refused { .. }).then_some("is away");
        NoStream { failure: running::refused(error), unreached, is_busy: false }
    }
}

impl From<Failure> for NoStream {
    fn from(failure: Failure) -> NoStream {
        NoStream { failure, unreached: None, is_busy: false }
    }
}

impl From<NoStream> for Failure {
    fn from(none: NoStream) -> Failure {
        none.failure
    }
}

/// The two halves, each of which keeps to a rate.
pub(super) type Ends<'a> = StreamEnds<Limited<&'a PeerStream>, Limited<&'a PeerStream>>;

impl PeerStream {
    /// Opens a stream over the daemon that runs; without one, over a node of this command's own ([`running::carrying`]).
    pub(crate) fn open(
        tunnel: Option<&str>,
        target: StreamTarget<'_>,
        priority: FilePriority,
    ) -> Result<PeerStream, NoStream> {
        let line = StatusLine::new();
        match running::carrying(tunnel, target.peer)? {
            CarryingNode::Own(file) => {
                let interface = configuration::load(&file)?.node.interface;
                let own = PrivateDaemon::start(node_command(&file)?, &interface).map_err(Failure::new)?;
                let show = || own.show().ok();
                let stream = line.waiting(target.peer, show, || own.open_stream(target.peer, of(priority)));
                let stream = stream.map_err(NoStream::asked)?;
                PeerStream::begin(stream, target, priority, CarryingNode::Own(file), Some(own))
            }
            CarryingNode::Running(interface) => {
                let show = || client::show(&interface).ok();
                line.waiting(target.peer, show, || PeerStream::over(&interface, target, priority))
            }
        }
    }

    /// Opens a stream over the daemon of `interface`.
    pub(crate) fn over(
        interface: &str,
        target: StreamTarget<'_>,
        priority: FilePriority,
    ) -> Result<PeerStream, NoStream> {
        let stream = client::open_stream(interface, target.peer, of(priority)).map_err(NoStream::asked)?;
        PeerStream::begin(stream, target, priority, CarryingNode::Running(interface.to_owned()), None)
    }

    fn begin(
        opened: OpenedStream,
        target: StreamTarget<'_>,
        priority: FilePriority,
        node: CarryingNode,
        own: Option<PrivateDaemon>,
    ) -> Result<PeerStream, NoStream> {
        let OpenedStream { mut stream, rate, .. } = opened;
        // A peer of which nothing is heard, and a stream that others keep from being served, look the same.
        let silence = (priority != FilePriority::Bulk).then_some(SILENCE);
        let begun = patient(&stream, silence).and_then(|()| stream.write_all(&target.head()));
        begun.map_err(Failure::doing("open a stream to the peer"))?;
        let (peer, link) = (target.peer.to_owned(), rate.and_then(bit_rate));
        let (begun, sign, heard) = (Instant::now(), AtomicU64::new(0), AtomicBool::new(false));
        let left = AtomicU32::new(0);
        Ok(PeerStream { stream, peer, link, begun, sign, left, heard, node, _own: own })
    }

    /// Returns the name of the peer.
    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    /// The node that carries it.
    pub(crate) fn node(&self) -> &CarryingNode {
        &self.node
    }

    /// One half, which keeps to a rate.
    fn half(&self, limit: Option<Rate>) -> Limited<&PeerStream> {
        Limited::new(self, limit)
    }

    /// The rate of the link to the peer, if the node knows it.
    pub(crate) fn link(&self) -> Option<BitRate> {
        self.link
    }

    /// Both halves.
    pub(super) fn ends(&self, limit: Option<Rate>) -> Ends<'_> {
        StreamEnds {
            reader: self.half(limit),
            writer: self.half(limit),
            calibration: MachineSpeed::of_this_machine().calibration,
            limit: limit.and_then(bit_rate),
            link: self.link,
        }
    }

    /// Returns for how long nothing has come from the peer and it has taken nothing, as far as this was called each second.
    pub(crate) fn silent(&self) -> Duration {
        // A writer that waits goes on when the node has taken most of what it wrote: that is 25 s of 64 kbit/s.
        let left = unsent(&self.stream).unwrap_or(0);
        if left < self.left.swap(left, Ordering::Relaxed) {
            self.note_sign();
        }
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.sign.load(Ordering::Relaxed)))
    }

    fn note_sign(&self) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.sign.store(now, Ordering::Relaxed);
    }

    /// Does `work`, which waits for what the peer says; what is said meanwhile of a silence stands in `line`.
    pub(crate) fn awaiting<T>(&self, line: &AnswerLine, work: impl FnOnce() -> T) -> T {
        line.during(&self.peer, || self.silent(), work)
    }

    /// Whether it was closed before the peer said anything.
    pub(super) fn is_unheard(&self, error: &TransferError) -> bool {
        matches!(error, TransferError::Interrupted(_)) && !self.heard.load(Ordering::Relaxed)
    }

    /// Why a transfer over it ended before its end.
    pub(super) fn failed(&self, error: TransferError) -> NoStream {
        let is_lost = matches!(error, TransferError::Interrupted(_)) && !self.is_unheard(&error);
        let unreached = is_lost.then_some("was lost meanwhile");
        let is_busy = matches!(&error, TransferError::Refused(fault) if fault.reason == FaultReason::Busy);
        NoStream { failure: self.why_failed(error), unreached, is_busy }
    }

    fn why_failed(&self, error: TransferError) -> Failure {
        match error {
            unheard if self.is_unheard(&unheard) => {
                let others = match self.node {
                    CarryingNode::Own(_) => ", and no more than four commands at once without a daemon",
                    CarryingNode::Running(_) => "",
                };
                Failure::new("the peer closed the stream before it said anything")
                    .remedy(format!(
                        "it serves no files if its configuration has no [[folder]]{others}; else run the same command again"
                    ))
                    .code(Code::Interrupted)
            }
            TransferError::Refused(fault) if fault.reason == FaultReason::Vanished => {
                let peer = &self.peer;
                Failure::new(format!("the peer refuses: {}", fault_words(&fault))).remedy(format!(
                    "`strait ls {peer}:` lists its folders, `strait ls {peer}:FOLDER` what is in one"
                ))
            }
            TransferError::Refused(fault) => {
                Failure::new(format!("the peer refuses: {}", fault_text(&fault)))
            }
            TransferError::Stopped(fault) => {
                Failure::new(format!("stopped: {}", fault_text(&fault))).code(Code::Interrupted)
            }
            TransferError::Interrupted(error) => {
                Failure::new(format!("interrupted: {}", self.why_ended(&error)))
                    .remedy("run the same command again: it goes on where it stopped")
                    .code(Code::Interrupted)
            }
            TransferError::Protocol(_) => Failure::new(error).remedy("update the older of the two programs"),
        }
    }

    /// Returns why the node or the system ended the stream: it closes a stream whose connection it gave up, without a word.
    fn why_ended(&self, error: &io::Error) -> String {
        let silent = self.silent();
        let silence = (silent >= silence::patience(self.link)).then(|| silence::words(&self.peer, silent));
        if client::is_closed(error) {
            let why = silence.map_or_else(String::new, |words| format!(": {words}"));
            return format!("the stream to {} was closed{why}", self.peer);
        }
        silence.unwrap_or_else(|| error.to_string())
    }

    /// Ends the stream in both directions.
    pub(crate) fn hang_up(&self) {
        // It may have ended already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Read for &PeerStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let got = (&self.stream).read(bytes)?;
        if got > 0 {
            self.heard.store(true, Ordering::Relaxed);
            self.note_sign();
        }
        Ok(got)
    }
}

impl Write for &PeerStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let put = (&self.stream).write(bytes)?;
        if put > IDLE_WRITE {
            self.note_sign();
        }
        Ok(put)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&self.stream).flush()
    }
}

/// A half of a stream that keeps it open.
#[derive(Clone)]
pub(crate) struct StreamHalf(pub(crate) Arc<PeerStream>);

impl Read for StreamHalf {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(bytes)
    }
}

impl Write for StreamHalf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}

fn of(priority: FilePriority) -> StreamPriority {
    match priority {
        FilePriority::Now => StreamPriority::Now,
        FilePriority::Normal => StreamPriority::Normal,
        FilePriority::Bulk => StreamPriority::Bulk,
    }
}

/// What runs a node with the user's own configuration.
pub(crate) fn node_command(file: &std::path::Path) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(Failure::doing("find this program's own file"))?;
    let mut command = Command::new(program);
    command.arg("up").arg(file).arg("--foreground").stdout(Stdio::null());
    if std::env::var_os(FILTER_VARIABLE).is_none() {
        command.env(FILTER_VARIABLE, QUIET_FILTER);
    }
    Ok(command)
}

/// A rate as units take it.
pub(super) fn bit_rate(rate: Rate) -> Option<BitRate> {
    BitRate::bits(rate.bits() as f64)
}

/// Has a stream end where the peer stops in the middle without closing it.
pub(super) fn patient(stream: &UnixStream, silence: Option<Duration>) -> io::Result<()> {
    stream.set_read_timeout(silence)?;
    stream.set_write_timeout(silence)
}

/// Random bytes of the system's.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(Failure::doing("read random bytes"))?;
    Ok(bytes)
}

/// The name of a transfer: the same for the same command of the same user on the same host, so that it goes on where it stopped. No
/// peer can guess what is sent from it, as the host's own number is in it.
pub(super) fn transfer_name(what: &str, place: &PeerPlace, paths: &[PathBuf]) -> Result<[u8; 16], Failure> {
    let host = std::fs::read("/etc/machine-id").or_else(|_| std::fs::read("/proc/sys/kernel/random/boot_id"));
    let host = host.map_err(Failure::doing("read the host's number (/etc/machine-id)"))?;
    let user = std::fs::metadata("/proc/self").map_err(Failure::doing("find the user"))?;
    let mut hasher = blake3::Hasher::new_derive_key("strait 2026-11 name of a file transfer");
    let user = std::os::unix::fs::MetadataExt::uid(&user).to_be_bytes();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_be_bytes()).update(bytes);
    };
    for bytes in [&host[..], &user, what.as_bytes(), place.peer.as_bytes(), &place.folder, &place.path] {
        part(bytes);
    }
    for path in paths {
        let path = std::path::absolute(path).map_err(Failure::doing("find the current folder"))?;
        part(path.as_os_str().as_bytes());
    }
    Ok(*hasher.finalize().as_bytes().first_chunk().unwrap_or(&[0; 16]))
}
