//! Places of sessions, of which there are so many: a folder with a locked file for each, which says what its monitor knows of it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::folder;
use super::signals::signal_process;
use crate::runtime;

/// The folder's name.
const PLACES: &str = "places";
/// The name of a file for a session, whose number follows; there is another one that counts those of the peer.
const ALL: &str = "all";
/// Sessions of all peers at once: 16 MiB each make 8 GiB.
const ALL_MAX: u16 = 512;

/// A session that a peer has at this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningSession {
    /// The number of its monitor.
    pub process: i32,
    /// The interface of the node that began it.
    pub interface: String,
    /// The peer's name, as the configuration had it then.
    pub peer: String,
    /// Its public key, in base64.
    pub key: String,
    /// The principal, if a ticket said who it is.
    pub principal: Option<String>,
    /// The account.
    pub account: String,
    /// The time when it began, in seconds since 1970.
    pub since: u64,
}

impl RunningSession {
    /// Lists all that daemons of this user have begun.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all() -> io::Result<Vec<RunningSession>> {
        let places = places()?;
        let _unchanged = match runtime::lock(&places) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            locked => locked?,
        };
        let files = (0..ALL_MAX).map_while(|number| File::open(path(&places, ALL, number)).ok());
        let taken = files.filter(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
        Ok(taken.filter_map(|file| serde_json::from_reader(file).ok()).collect())
    }

    /// Has its monitor end it: its programs are hung up, and after some seconds killed.
    ///
    /// # Errors
    /// As `kill(2)`, but for one that has just ended.
    pub fn end(&self) -> io::Result<()> {
        match signal_process(self.process, libc::SIGTERM) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            told => told,
        }
    }
}

/// A session's place among those that there may be; free again when this is dropped, or its process ends.
#[derive(Debug)]
pub(super) struct SessionPlace {
    _all: File,
    _peer: File,
}

impl SessionPlace {
    /// Takes a place for a session of those that are counted by this name, which may have `most`. Nothing if all are taken.
    pub(super) fn take(session: &RunningSession, name: &str, most: u16) -> io::Result<Option<SessionPlace>> {
        let places = places()?;
        match DirBuilder::new().mode(0o700).create(&places) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Who reads what a locked file says is not to find what an earlier session wrote there.
        let _unread = runtime::lock(&places)?;
        let Some(mut all) = free(&places, ALL, ALL_MAX)? else { return Ok(None) };
        // Base64, as file names have it.
        let Some(peer) = free(&places, &name.replace('/', "_"), most)? else { return Ok(None) };
        all.set_len(0)?;
        all.write_all(&serde_json::to_vec(session)?)?;
        Ok(Some(SessionPlace { _all: all, _peer: peer }))
    }
}

fn places() -> io::Result<PathBuf> {
    Ok(folder::folder().map_err(io::Error::other)?.join(PLACES))
}

fn path(places: &Path, name: &str, number: u16) -> PathBuf {
    places.join(format!("{name}.{number}"))
}

/// Locks the first file of this name that is not locked.
fn free(places: &Path, name: &str, most: u16) -> io::Result<Option<File>> {
    for number in 0..most {
        let mut options = OpenOptions::new();
        let file =
            options.write(true).create(true).truncate(false).mode(0o600).open(path(places, name, number))?;
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}
