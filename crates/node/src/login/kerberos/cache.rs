//! The file of a ticket that a client passed on: written as the account, removed with the session.

use std::path::{Path, PathBuf};
use std::time::Duration;

use strait_kerberos::Delegated;

use super::super::account::Account;
use super::super::folder;
use super::{Part, Refused, part};
use crate::privileges;

/// What files of passed-on tickets are called, before the number of the process that removes them.
const CACHE: &str = "krb5cc.";

/// The file of a ticket that was passed on, removed when this is dropped.
#[derive(Debug)]
pub(in super::super) struct TicketCache(PathBuf);

impl TicketCache {
    /// Keeps a ticket that was passed on, for the account; nothing else is done with its bytes here.
    pub(super) fn keep(ticket: &[u8], account: &Account, patience: Duration) -> Result<TicketCache, Refused> {
        let monitor = std::process::id();
        let cache = TicketCache(cache_file(&folder::of(account).map_err(Refused::here)?, monitor));
        let part = Part::start(c"strait-ticket", patience, |ours| {
            part::tell(ours, &store(ticket, account, monitor))
        });
        let stored = part?.says(patience).unwrap_or_else(|| Err("that took too long".to_owned()));
        let refused =
            |why: String| Refused::new(format!("the ticket that was passed on cannot be kept: {why}"));
        stored.map(|()| cache).map_err(refused)
    }

    /// What programs are to find it by.
    pub(in super::super) fn variable(&self) -> Vec<u8> {
        [b"KRB5CCNAME=FILE:", self.0.as_os_str().as_encoded_bytes()].concat()
    }
}

impl Drop for TicketCache {
    fn drop(&mut self) {
        // Its folder is the account's own, the folder above is not: the name leads nowhere else.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Writes a ticket as the account, in its folder: in a process that is the account before the library reads what a peer may have made.
fn store(ticket: &[u8], account: &Account, monitor: u32) -> Result<(), String> {
    let folder = folder::enter(account).map_err(|error| error.to_string())?;
    privileges::drop_all(account.service_user()).map_err(|error| error.to_string())?;
    remove_old(&folder);
    let file = cache_file(&folder, monitor);
    Delegated::import(ticket)
        .and_then(|ticket| ticket.store(&format!("FILE:{}", file.display())))
        .map_err(|error| error.to_string())
}

fn cache_file(folder: &Path, monitor: u32) -> PathBuf {
    folder.join(format!("{CACHE}{monitor}"))
}

/// Removes what monitors left that were killed.
fn remove_old(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.strip_prefix(CACHE)) else { continue };
        if number.parse::<u32>().is_ok_and(|number| !Path::new(&format!("/proc/{number}")).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
