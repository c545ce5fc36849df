//! A transfer of millions of names: memory does not grow with them.

use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::{env, fs, io, thread};

use super::memory::MemoryAside;
use super::pair::{Buffered, Plain, key, rules};
use crate::message::{EntryKind, EntryMessage, FileFault, MessageReader};
use crate::session::content::SenderNonces;
use crate::session::driver::{ReceiverOrders, run_receiver};
use crate::session::ends::*;
use crate::session::event::Watch;
use crate::session::sender::{SenderOrders, run_sender};

/// Says to the process that a test starts how many names it sends.
const NAMES: &str = "STRAIT_TRANSFER_NAMES";
/// Names of a folder, its own included.
const FOLDER: u64 = 10_000;
/// What a process of both ends may take, in kB: what each end may alone.
const MOST: u64 = 64 << 10;

/// Folders of empty files.
struct ManyNames {
    next: u64,
    all: u64,
}

struct NoContent;

impl Origin for ManyNames {
    type Content = NoContent;

    fn next_entry(&mut self) -> Option<Result<EntryMessage, NotFound>> {
        let at = self.next;
        if at == self.all {
            return None;
        }
        self.next += 1;
        let folder = at / FOLDER;
        let (path, kind) = match at % FOLDER {
            0 => (format!("folder-{folder}"), EntryKind::Folder),
            file => (format!("folder-{folder}/the-name-of-a-file-{file}"), EntryKind::File { size: Some(0) }),
        };
        Some(Ok(EntryMessage::new(path.into_bytes(), kind, 0o755, 5)))
    }

    fn open(&mut self, _entry: &EntryMessage) -> Result<NoContent, FileFault> {
        Ok(NoContent)
    }
}

impl Content for NoContent {
    fn state(&mut self) -> io::Result<ContentState> {
        Ok(ContentState { size: Some(0), modified: 5, version: [0; 8] })
    }

    fn read_at(&mut self, _offset: u64, _buffer: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn extent(&mut self, _from: u64) -> io::Result<Option<(u64, u64)>> {
        Ok(None)
    }
}

/// Takes names and forgets them, in groups.
#[derive(Default)]
struct Forgetful {
    group: Vec<u64>,
}

impl Destination for Forgetful {
    type Aside = MemoryAside;

    fn folder(&mut self, _entry: &EntryMessage) -> Result<bool, FileFault> {
        Ok(true)
    }

    fn standing(&mut self, _entry: &EntryMessage) -> Result<Standing, FileFault> {
        Ok(Standing::Other)
    }

    fn older(&mut self, _entry: &EntryMessage) -> Option<(fs::File, u64)> {
        None
    }

    fn aside(&mut self, entry: &EntryMessage, _resume: bool) -> Result<MemoryAside, FileFault> {
        Ok(MemoryAside::empty(entry))
    }

    fn discard(&mut self, _aside: MemoryAside) {}

    fn finish(&mut self, entry: &EntryMessage, _content: Option<MemoryAside>) -> Result<(), FileFault> {
        self.group.push(entry.index);
        Ok(())
    }

    fn settle(&mut self, all: bool) -> Result<Vec<Settlement>, FileFault> {
        let due = all || self.group.len() >= 2048;
        let group = if due { std::mem::take(&mut self.group) } else { Vec::new() };
        Ok(group.into_iter().map(|index| (index, Ok(()))).collect())
    }

    fn end(&mut self) {}

    fn prune(
        &mut self,
        _folder: &[u8],
        _dry_run: bool,
        _keep: &dyn Fn(&[u8]) -> bool,
        _removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), FileFault> {
        Ok(())
    }
}

/// Sends so many names from one end to another: the most memory that this process ever had, in kB.
fn send(all: u64) -> u64 {
    let (one, other) = UnixStream::pair().unwrap();
    let cancel = AtomicBool::new(false);
    let orders =
        SenderOrders { first: Vec::new(), dry_run: false, nonces: SenderNonces::Server([1; 32], [2; 32]) };
    let end = |stream: &UnixStream| drop(stream.shutdown(std::net::Shutdown::Both));
    let (sender, receiver) = thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let hang_up = || end(&other);
            let watch = Watch { event: &|_| (), cancel: &cancel, hang_up: &hang_up };
            let orders = ReceiverOrders { rules: rules(), first: Vec::new(), key: key() };
            let reader = MessageReader::new(io::BufReader::new(Buffered(&other)));
            run_receiver(reader, Plain(io::BufWriter::new(&other)), Forgetful::default(), orders, watch)
        });
        let hang_up = || end(&one);
        let watch = Watch { event: &|_| (), cancel: &cancel, hang_up: &hang_up };
        let reader = MessageReader::new(io::BufReader::new(Buffered(&one)));
        let mut origin = ManyNames { next: 0, all };
        let writer = Plain(io::BufWriter::new(&one));
        (run_sender(reader, writer, &mut origin, orders, watch), receiver.join().unwrap())
    });
    assert_eq!([sender.unwrap(), receiver.unwrap()].map(|tally| (tally.whole, tally.failed)), [(all, 0); 2]);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    most.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The test of this name in a process of its own, whose memory is not that of others, sends so many names.
fn in_own_process(test: &str, all: u64) {
    if let Some(all) = env::var_os(NAMES) {
        let all = all.to_str().unwrap().parse().unwrap();
        let most = send(all);
        println!("{all} names: {most} kB at most");
        return assert!(most < MOST, "{most} kB");
    }
    let mut own = Command::new(env::current_exe().unwrap());
    let name = format!("session::tests::many_names::{test}");
    own.args([&name, "--exact", "--nocapture", "--include-ignored"]).env(NAMES, all.to_string());
    assert!(own.status().unwrap().success());
}

#[test]
fn a_quarter_of_a_million_names_take_no_more_memory_than_any_transfer_may() {
    in_own_process("a_quarter_of_a_million_names_take_no_more_memory_than_any_transfer_may", 250_000);
}

#[test]
#[ignore = "takes minutes; the same code runs with fewer"]
fn ten_million_names_take_no_more_memory_than_any_transfer_may() {
    in_own_process("ten_million_names_take_no_more_memory_than_any_transfer_may", 10_000_000);
}
