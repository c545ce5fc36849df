//! Tickets of sessions that may be resumed: a file for each in the state directory, which only its user may read.

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use strait_login::{SessionNumber, Ticket};
use strait_node::folders::state_folder;
use strait_node::path_memory::unix_time;
use strait_node::{kept_file, runtime};
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::files::random;

/// The folder in the state directory.
const FOLDER: &str = "sessions";
/// Most bytes of a file: a ticket, two names, a number.
const FILE_MAX: u64 = 4096;

/// What lets a client come back to a session that it begins.
pub(crate) fn new_ticket() -> Result<Ticket, Failure> {
    Ok(Ticket::new(SessionNumber(u64::from_le_bytes(random()?)), random()?))
}

/// A session that was left.
#[derive(Clone, Debug)]
pub(super) struct KeptTicket {
    pub(super) ticket: Ticket,
    pub(super) peer: String,
    /// The account that was asked for; empty if none was named.
    pub(super) account: String,
    /// When it began, in seconds since 1970.
    pub(super) since: u64,
}

impl KeptTicket {
    pub(super) fn new(ticket: Ticket, peer: &str, account: &str) -> KeptTicket {
        let since = unix_time();
        KeptTicket { ticket, peer: peer.to_owned(), account: account.to_owned(), since }
    }

    /// Writes it down.
    pub(super) fn keep(&self) -> io::Result<()> {
        let folder = folder()?;
        let text = Zeroizing::new(format!(
            "{}\n{}\n{}\n{}\n",
            *self.ticket.to_text(),
            self.peer,
            self.account,
            self.since
        ));
        kept_file::replace(&folder.join(name(self.ticket.session())), text.as_bytes())
    }
}

/// All that are kept, the newest first. What cannot be read is left out.
pub(super) fn all() -> Vec<KeptTicket> {
    let Ok(folder) = folder() else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries.filter_map(|entry| read(entry.path())).collect();
    all.sort_by_key(|kept| std::cmp::Reverse((kept.since, kept.ticket.session())));
    all
}

/// Removes that of a session that is over.
pub(super) fn forget(session: SessionNumber) {
    if let Ok(folder) = folder() {
        let _ = fs::remove_file(folder.join(name(session)));
    }
}

fn name(session: SessionNumber) -> String {
    session.to_string()
}

fn folder() -> io::Result<PathBuf> {
    let state = state_folder()
        .ok_or_else(|| io::Error::other("there is no state directory: set STRAIT_STATE_DIR"))?;
    runtime::make(&state).map_err(io::Error::other)?;
    let folder = state.join(FOLDER);
    runtime::make(&folder).map_err(io::Error::other)?;
    Ok(folder)
}

fn read(path: PathBuf) -> Option<KeptTicket> {
    let name = path.file_name()?.to_str()?.to_owned();
    let mut text = Zeroizing::new(String::new());
    fs::File::open(path).ok()?.take(FILE_MAX).read_to_string(&mut text).ok()?;
    let mut lines = text.lines();
    let ticket = Ticket::from_text(lines.next()?)?;
    let (peer, account) = (lines.next()?.to_owned(), lines.next()?.to_owned());
    let since = lines.next()?.parse().ok()?;
    (ticket.session().to_string() == name).then_some(KeptTicket { ticket, peer, account, since })
}
