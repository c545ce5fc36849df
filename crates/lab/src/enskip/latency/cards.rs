//! Cards on disk, and a directory that has those of all: it answers a name with a card, over TCP.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};
use strait_keying::sessionless::CARD_TEXT_MAX;
use strait_wire::sessionless::{NAME_MAX, Name};

/// How long a connection may stand still.
const PATIENCE: Duration = Duration::from_secs(5);

/// Cards by the hash of their keys.
type Cards = Arc<Mutex<BTreeMap<Name, String>>>;

/// Cards that a node has on disk.
#[derive(Clone, Debug)]
pub(super) struct CardFolder(PathBuf);

impl CardFolder {
    /// In a folder of the node's own.
    pub(super) fn new(folder: &Path) -> CardFolder {
        CardFolder(folder.to_owned())
    }

    /// The card of this name, if it is there.
    pub(super) fn read(&self, name: Name) -> io::Result<Option<String>> {
        match fs::read_to_string(self.path(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps a card.
    pub(super) fn keep(&self, name: Name, text: &str) -> io::Result<()> {
        fs::write(self.path(name), text)
    }

    /// Makes the next reading of a card one of the disk itself: the kernel is to forget its pages.
    pub(super) fn forget_pages(&self, name: Name) -> io::Result<()> {
        let file = File::open(self.path(name))?;
        // Pages that are not yet on disk are not forgotten.
        file.sync_all()?;
        Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
    }

    fn path(&self, name: Name) -> PathBuf {
        let id: String = name.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.join(format!("{id}.card"))
    }
}

/// A directory on the loopback interface.
#[derive(Debug)]
pub(super) struct CardDirectory {
    address: SocketAddr,
    cards: Cards,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CardDirectory {
    /// An empty one.
    pub(super) fn start() -> io::Result<CardDirectory> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let (cards, over) = (Cards::default(), Arc::new(AtomicBool::new(false)));
        let (shared, ends) = (Arc::clone(&cards), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                // Who asked notices a connection that breaks.
                let _ = answer(stream, &shared);
            }
        });
        Ok(CardDirectory { address, cards, over, thread: Some(thread) })
    }

    /// Where it is asked.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a card.
    pub(super) fn add(&self, name: Name, text: String) {
        self.cards.lock().unwrap_or_else(PoisonError::into_inner).insert(name, text);
    }
}

impl Drop for CardDirectory {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // Wakes it.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: TcpStream, cards: &Cards) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut id = [0; NAME_MAX];
    stream.read_exact(&mut id)?;
    let text = cards.lock().unwrap_or_else(PoisonError::into_inner).get(&Name::key_hash(id)).cloned();
    stream.write_all(text.unwrap_or_default().as_bytes())
}

/// The card of this name, as a directory has it; none where it has none.
pub(super) fn fetched(directory: SocketAddr, name: Name) -> io::Result<Option<String>> {
    let mut stream = TcpStream::connect(directory)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(name.bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut text = String::new();
    stream.take(CARD_TEXT_MAX as u64).read_to_string(&mut text)?;
    Ok((!text.is_empty()).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_kept_found_and_fetched() {
        let folder = strait_testbed::Workdir::create().unwrap();
        let cards = CardFolder::new(folder.path());
        let [name, other] = [1, 2].map(|byte| Name::key_hash([byte; 16]));
        assert_eq!(cards.read(name).unwrap(), None);
        cards.keep(name, "a card").unwrap();
        cards.forget_pages(name).unwrap();
        assert_eq!(cards.read(name).unwrap().as_deref(), Some("a card"));
        assert!(cards.forget_pages(other).is_err());
        let directory = CardDirectory::start().unwrap();
        directory.add(name, "another card".to_owned());
        assert_eq!(fetched(directory.address(), name).unwrap().as_deref(), Some("another card"));
        assert_eq!(fetched(directory.address(), other).unwrap(), None);
        let address = directory.address();
        drop(directory);
        assert!(fetched(address, name).is_err());
    }
}
