//! The process that serves files to peers, for a node: it makes one process for each stream, which goes on as the owner of the
//! folder that is meant, and has no other folder.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use strait_compress::Calibration;
use strait_compress::calibrate::CalibrationNumbers;
use strait_node::config::{Config, FolderSection, FolderSymlinks};
use strait_node::daemon::ServiceMain;
use strait_node::privileges::{self, ServiceUser};
use strait_node::runtime;
use strait_node::services::{
    Places, ServiceChannel, ServiceEvent, ServiceWorkers, StreamHead, TimeLimit, WorkerLimits, serve_files,
};
use strait_node::speed::MachineSpeed;
use strait_scheduler::Rate;
use strait_transfer::folder::{FolderRules, SymlinkRule};
use strait_transfer::message::FaultReason;
use strait_transfer::on_receive::{CommandEnd, OwedCommand, OwedCommands, ReceiveCommand};
use strait_transfer::session::{
    SERVER_SILENCE, SharedFolder, StreamEnds, TransferError, TransferEvent, Watch, refuse, serve,
};
use strait_transfer::{FolderPath, TransferId};

use super::kept;
use super::served_folder::{FoundFolder, ServedFolder};
use super::stream::{FILES, bit_rate, patient, random};
use crate::served::{KnownPeers, RefusedStreams};

/// A session has 24 MiB of compression history, 30 MiB of messages and records at most, and stacks of eight threads.
const MEMORY: u64 = 256 << 20;
/// Sessions at once; a peer has two whatever others have.
const LIMITS: WorkerLimits = WorkerLimits { places: Places { all: 32, peer: 8, own: 2 }, memory: MEMORY };
/// The time that a stream has for its request, as a login has it.
const REQUEST: Duration = Duration::from_secs(10);
/// How often it looks whether sessions have ended, while there are any.
const LOOK: Duration = Duration::from_secs(1);
/// How long a run of a transfer waits for the one before it. That ends some 5 s after a client's host begins another connection
/// since it was restarted, and at once where only the client was killed.
const PREDECESSOR: Duration = Duration::from_secs(20);
/// The time for which unfinished files are kept for a transfer that may go on: 30 days, as an outbox lists what is over.
const UNFINISHED: Duration = Duration::from_secs(30 * 86_400);
/// How long a folder's command may run.
const COMMAND: Duration = Duration::from_secs(600);
/// Bytes of names that a folder's command is told at most; of a transfer with more it gets the first.
const NAMES_MAX: usize = 8 << 20;

/// What serves the files of the configuration at `path`; none if it has no folder. What is wrong with it the daemon says.
pub(crate) fn service(path: &Path) -> Option<ServiceMain> {
    // The daemon reads the same file, and changes to no other folder before.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let config = Config::load_without_identity(&path).ok().filter(|config| !config.folders.is_empty())?;
    let service = FileService::new(path, config);
    Some(Box::new(move |channel| service.run(&channel)))
}

/// A node's folders, and who is served from them.
struct FileService {
    path: PathBuf,
    folders: Vec<ServedFolder>,
    /// Bytes of copies of what is sent, if they are kept.
    keep_sent: Option<u64>,
    peers: KnownPeers,
    workers: ServiceWorkers,
    /// What codecs take here, once there was a stream.
    calibration: Option<Calibration>,
    refused: RefusedStreams,
}

impl FileService {
    fn new(path: PathBuf, config: Config) -> FileService {
        let workers = ServiceWorkers::new(LIMITS);
        let mut service = FileService {
            path,
            folders: Vec::new(),
            keep_sent: None,
            peers: KnownPeers::default(),
            workers,
            calibration: None,
            refused: RefusedStreams::default(),
        };
        service.take(config);
        service
    }

    /// Takes the folders of the configuration; while something is wrong with it, those from before stay.
    fn read_again(&mut self) {
        match Config::load_without_identity(&self.path) {
            Ok(config) => self.take(config),
            Err(error) => tracing::error!("files are served as before: {error}"),
        }
    }

    fn take(&mut self, config: Config) {
        self.peers = KnownPeers::of(&config);
        self.folders = config.folders.into_iter().map(ServedFolder::find).collect();
        for folder in &self.folders {
            if let Err(error) = folder.found() {
                tracing::error!("[[folder]] {} is not served: {error}", folder.section.name);
            }
        }
        self.keep_sent = config.node.keep_sent;
    }

    /// Serves until the node ends.
    fn run(mut self, channel: &ServiceChannel) -> i32 {
        self.run_owed();
        loop {
            let quiet = self.workers.is_empty() && self.refused.is_empty();
            match channel.next((!quiet).then_some(LOOK)) {
                Ok(ServiceEvent::Stream(head, stream)) => self.stream(&head, stream),
                Ok(ServiceEvent::ConfigChanged) => self.read_again(),
                Ok(ServiceEvent::Silence) => self.workers.reap(),
                Err(_) => return 0,
            }
            self.refused.expire();
        }
    }

    /// Has commands run that a process that was killed left.
    fn run_owed(&mut self) {
        for folder in self.folders.iter().filter(|folder| !folder.section.on_receive.is_empty()) {
            let Ok(FoundFolder { path, owner }) = folder.found() else { continue };
            if !OwedCommands::open(path).is_ok_and(|owed| owed.may_owe()) {
                continue;
            }
            let name = &folder.section.name;
            let task = FileTask::Owed(Box::new(folder.for_one(&String::new())));
            if let Err(error) = self.workers.start(&format!("[[folder]] {name}"), *owner, &task, &[]) {
                tracing::warn!("{name}: on_receive: cannot run what is owed: {error}");
            }
        }
    }

    /// Has a stream served, or closes it.
    fn stream(&mut self, head: &StreamHead, stream: UnixStream) {
        if !self.peers.opened(head) || [head.service, head.version] != FILES {
            tracing::debug!("{}", head.refused("files", "no peer any more, or no such service"));
            return;
        }
        let is_meant =
            |it: &ServedFolder| it.section.name.as_bytes() == head.name && it.section.is_for(&head.peer);
        if let Some(folder) = self.folders.iter_mut().find(|folder| is_meant(folder)) {
            folder.look_again();
        }
        let meant = self.folders.iter().find(|folder| is_meant(folder));
        // Who may use no such folder, or none at all, costs no process.
        let lists =
            head.name.is_empty() && self.folders.iter().any(|folder| folder.section.is_for(&head.peer));
        if meant.is_none() && !lists {
            tracing::info!("{}", head.refused("files", "there is no such folder for it"));
            return self.turn_away(stream, FaultReason::NoFolder);
        }
        let owner = |folder: &ServedFolder| folder.found().map(|found| found.owner);
        let user = match meant.map_or_else(|| Ok(unprivileged()), owner) {
            Ok(user) => user,
            Err(error) => {
                tracing::error!("files of {}: {error}", Printed(&head.name));
                self.turn_away(stream, FaultReason::System);
                return;
            }
        };
        let folders = self
            .folders
            .iter()
            .filter(|folder| meant.map_or(folder.section.is_for(&head.peer), |it| std::ptr::eq(it, *folder)));
        let calibration = self.calibration.get_or_insert_with(|| MachineSpeed::of_this_machine().calibration);
        let serving = Serving {
            head: head.clone(),
            folders: folders.map(|folder| folder.for_one(&head.peer)).collect(),
            calibration: calibration.numbers(),
            // Another user may not write where this one keeps its state.
            keep_sent: self.keep_sent.filter(|_| matches!(user, ServiceUser::Same)),
        };
        let task = FileTask::Stream(Box::new(serving));
        if let Err(error) = self.workers.start(&head.peer, user, &task, &[stream.as_fd()]) {
            tracing::warn!("{}", head.refused("files", &error.to_string()));
            let busy = error.kind() == io::ErrorKind::ResourceBusy;
            self.turn_away(stream, if busy { FaultReason::TooMany } else { FaultReason::System });
        }
    }

    /// Tells a client why it is not served.
    fn turn_away(&mut self, stream: UnixStream, why: FaultReason) {
        let told = refuse(&stream, why.into());
        self.refused.keep(stream, told);
    }
}

/// A folder as a peer may use it.
fn shared(folder: &ServedFolder, peer: &String) -> SharedFolder {
    let (path, folder) = (folder.path(), &folder.section);
    let rules = FolderRules { keep_xattrs: true, ..rules(folder, peer) };
    SharedFolder {
        name: folder.name.clone(),
        path,
        rules,
        read: folder.read.contains(peer),
        write: folder.write.contains(peer),
        delete: folder.delete.contains(peer),
        patience: PREDECESSOR,
        copies: None,
        unfinished_since: unfinished_since(),
    }
}

/// Returns the time since when unfinished files of other transfers are kept.
pub(super) fn unfinished_since() -> SystemTime {
    SystemTime::now().checked_sub(UNFINISHED).unwrap_or(UNIX_EPOCH)
}

/// The rules for what a peer writes into a folder.
pub(crate) fn rules(folder: &FolderSection, peer: &String) -> FolderRules {
    let symlinks = match folder.symlinks {
        FolderSymlinks::Inside => SymlinkRule::Inside,
        FolderSymlinks::Any => SymlinkRule::Any,
        FolderSymlinks::None => SymlinkRule::None,
    };
    FolderRules {
        max_bytes: folder.max_bytes,
        max_entries: folder.max_entries,
        symlinks,
        hidden: !folder.read.contains(peer),
        ..FolderRules::default()
    }
}

/// A user without rights, if this process may become one.
fn unprivileged() -> ServiceUser {
    ServiceUser::find(None).unwrap_or(ServiceUser::Same)
}

/// A name from a peer.
struct Printed<'a>(&'a [u8]);

impl std::fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        strait_transfer::path::Printable(self.0).fmt(f)
    }
}

/// Does the task that this process was started for, if it was, and returns its exit status.
pub(crate) fn serve_one() -> Option<i32> {
    serve_files(|task, descriptors| match (task, descriptors.into_iter().next()) {
        (FileTask::Stream(serving), Some(stream)) => serving.run(&stream.into()),
        (FileTask::Owed(folder), _) => i32::from(!run_commands(&folder.section, &folder.path())),
        (FileTask::Stream(_), None) => 1,
    })
}

/// The task of a process.
#[derive(Serialize, Deserialize)]
enum FileTask {
    Stream(Box<Serving>),
    /// The commands of a folder that a process left which was killed.
    Owed(Box<ServedFolder>),
}

/// One stream, in a process of its own.
#[derive(Serialize, Deserialize)]
struct Serving {
    head: StreamHead,
    /// The folder that is meant; where the stream names none, all that are for the peer, for their names.
    folders: Vec<ServedFolder>,
    calibration: CalibrationNumbers,
    /// Bytes of copies of what is sent, if they are kept.
    keep_sent: Option<u64>,
}

impl Serving {
    fn run(self, stream: &UnixStream) -> i32 {
        let Some(calibration) = Calibration::from_numbers(&self.calibration) else { return 1 };
        let mut shared: Vec<_> = self.folders.iter().map(|folder| shared(folder, &self.head.peer)).collect();
        if self.keep_sent.is_some() {
            shared.iter_mut().for_each(|folder| folder.copies = kept::served(self.keep_sent, &self.head.key));
        }
        let (Ok(nonce), Ok(limit)) = (random(), TimeLimit::set(REQUEST)) else { return 1 };
        if patient(stream, Some(SERVER_SILENCE)).is_err() || !self.stay_in_folder(&shared) {
            return 1;
        }
        let arrived = Mutex::new(ArrivedTransfer { limit: Some(limit), ..ArrivedTransfer::default() });
        let cancel = AtomicBool::new(false);
        let event = |event| {
            let Ok(mut arrived) = arrived.lock() else { return };
            match event {
                TransferEvent::Asked { transfer, writes } => {
                    arrived.limit = None;
                    arrived.asked = writes.then_some(transfer);
                }
                TransferEvent::Whole { path } => arrived.names.add(path),
                // Its sender may not hear that it is done before it is written down that the command is to run.
                TransferEvent::Settled if !self.owe(&mut arrived) => cancel.store(true, Ordering::Relaxed),
                _ => {}
            }
        };
        let hang_up = || drop(stream.shutdown(Shutdown::Both));
        let watch = Watch { event: &event, cancel: &cancel, hang_up: &hang_up };
        let ends = StreamEnds {
            reader: stream,
            writer: stream,
            calibration,
            limit: None,
            link: self.head.rate_bits.and_then(Rate::from_bits).and_then(bit_rate),
        };
        let served = serve(ends, &shared, nonce, watch);
        hang_up();
        let (peer, folder) = (&self.head.peer, Printed(&self.head.name));
        match served {
            Ok(served) => {
                let tally = served.tally;
                tracing::info!("{peer}: {folder}: {} whole, {} failed", tally.whole, tally.failed);
                if let Some(folder) = self.commanded() {
                    run_commands(&folder.section, &folder.path());
                }
                0
            }
            Err(error) => {
                tracing::info!("{peer}: {folder}: {}", said(&error));
                1
            }
        }
    }

    /// Has the kernel refuse this process all files but those of the folder and the copies of what is sent from it, and all calls but those
    /// for files, where it can and the folder has no command, which may need others. Whether it may go on.
    fn stay_in_folder(&self, shared: &[SharedFolder]) -> bool {
        // What is not there is refused by the session, in words.
        let alone = |folder: &&FolderSection| folder.on_receive.is_empty() && folder.path.is_dir();
        let Some(folder) = self.meant().map(|folder| &folder.section).filter(alone) else { return true };
        // Copies that cannot be kept are done without.
        let copies = shared.iter().filter_map(|folder| folder.copies.as_ref()).map(|copies| &*copies.folder);
        let copies = copies.filter(|folder| runtime::make(folder).is_ok());
        let folders: Vec<&Path> = copies.chain([&*folder.path]).collect();
        let confined = privileges::confine_to(&folders, &[]);
        if let Err(error) = &confined {
            tracing::error!("files of {}: {error}", folder.name);
        }
        confined.is_ok()
    }

    /// Writes down that the folder's command is to run, if it has one and something arrived. False: it cannot be written down.
    fn owe(&self, arrived: &mut ArrivedTransfer) -> bool {
        let Some(folder) = self.commanded() else { return true };
        let paths = std::mem::take(&mut arrived.names.all);
        let (Some(transfer), Ok(sender), false) = (arrived.asked, self.head.key.parse(), paths.is_empty())
        else {
            return true;
        };
        let owed = OwedCommand { transfer: TransferId::from_bytes(transfer), sender, paths };
        let written = OwedCommands::open(&folder.path()).and_then(|commands| commands.owe(&owed));
        if let Err(error) = &written {
            tracing::error!("{}: on_receive: cannot write down what is to run: {error}", folder.section.name);
        }
        written.is_ok()
    }

    /// The folder that is meant, if one is.
    fn meant(&self) -> Option<&ServedFolder> {
        self.folders.first().filter(|_| !self.head.name.is_empty())
    }

    /// The folder that is meant, if it has a command.
    fn commanded(&self) -> Option<&ServedFolder> {
        self.meant().filter(|folder| !folder.section.on_receive.is_empty())
    }
}

/// Runs a folder's command for each transfer that it was not run for, but for those that another process has. Whether it could.
pub(crate) fn run_commands(folder: &FolderSection, path: &FolderPath) -> bool {
    let run = |owed: OwedCommand| {
        let command = ReceiveCommand {
            argv: folder.on_receive.clone(),
            folder: path.clone(),
            name: folder.name.clone(),
            owner: (privileges::user(), privileges::group()),
            owed,
        };
        let finished = command.carry_out(COMMAND);
        if finished.end != CommandEnd::Code(0) {
            let said = Printed(finished.said.as_bytes());
            tracing::warn!("{}: on_receive: {:?}: {said}", folder.name, finished.end);
        }
    };
    let settled = OwedCommands::open(path).and_then(|commands| commands.settle(run));
    settled.inspect_err(|error| tracing::error!("{}: on_receive: {error}", folder.name)).is_ok()
}

/// What ended a session, without what a peer wrote.
fn said(error: &TransferError) -> String {
    Printed(error.to_string().as_bytes()).to_string()
}

/// What a folder's command is told of.
#[derive(Default)]
struct ArrivedTransfer {
    /// Ends the process of a stream that asks for nothing.
    limit: Option<TimeLimit>,
    /// The transfer, if it writes here.
    asked: Option<[u8; 16]>,
    names: ReceivedNames,
}

/// Names that arrived, as many as a command is told.
#[derive(Default)]
pub(crate) struct ReceivedNames {
    all: Vec<Vec<u8>>,
    bytes: usize,
}

impl ReceivedNames {
    /// All that were added and fit.
    pub(crate) fn all(self) -> Vec<Vec<u8>> {
        self.all
    }

    /// Adds a name.
    pub(crate) fn add(&mut self, path: Vec<u8>) {
        // With what a vector takes beside its bytes.
        let weight = path.len() + 32;
        if !path.is_empty() && self.bytes + weight <= NAMES_MAX {
            self.bytes += weight;
            self.all.push(path);
        }
    }
}
