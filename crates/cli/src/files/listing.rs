//! `ls`: what a peer has.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;
use strait_transfer::message::{Asked, EntryKind, EntryMessage, Hello};
use strait_transfer::path::Printable;
use strait_transfer::session::{NO_DELETE, READ, WRITE, Watch, list};

use super::address::PeerPlace;
use super::stream::{PeerStream, random};
use crate::broker;
use crate::failure::{CommandResult, Failure};
use crate::flags::{FilePriority, ListFiles};
use crate::output::tell;
use crate::silence::AnswerLine;
use crate::units::bytes;

/// Lists what is in a place of a peer.
pub(crate) fn ls(flags: &ListFiles) -> CommandResult {
    let place = PeerPlace::parse(&flags.place)?;
    if let Some(listed) = broker::ls(flags, &place.peer, place.folder.is_empty() && place.path.is_empty()) {
        return listed;
    }
    let stream = PeerStream::open(flags.tunnel.as_deref(), place.target(), FilePriority::Now)?;
    let PeerPlace { folder, path, .. } = place;
    let of_folders = folder.is_empty();
    let asked = Asked::List { folder, place: path, deep: flags.recursive };
    let hello = Hello { transfer: random()?, nonce: random()?, asked };
    let (hang_up, cancel) = (|| stream.hang_up(), AtomicBool::new(false));
    let watch = Watch { event: &|_| (), cancel: &cancel, hang_up: &hang_up };
    let silence = AnswerLine::new();
    let mut each = |entry: EntryMessage| {
        silence.show(None);
        // The place itself is not in it.
        if !entry.path.is_empty() {
            let rights = if of_folders { rights(entry.mode) } else { Vec::new() };
            let line = if flags.json { as_json(&entry, &rights) } else { as_text(&entry, &rights) };
            tell(line);
        }
    };
    let listed = stream.awaiting(&silence, || list(stream.ends(None), hello, &mut each, watch));
    match listed.map_err(|error| stream.failed(error))? {
        0 => Ok(()),
        failed => Err(Failure::new(format!("{failed} names of the place could not be read by the peer"))),
    }
}

/// The rights of this node in a folder of the peer.
fn rights(mode: u32) -> Vec<&'static str> {
    let (read, write) = (mode & READ == READ, mode & WRITE == WRITE);
    let all = [("read", read), ("write", write), ("delete", write && mode & NO_DELETE == 0)];
    all.into_iter().filter_map(|(right, has)| has.then_some(right)).collect()
}

/// Permissions, size, time, name and rights in one line.
fn as_text(entry: &EntryMessage, rights: &[&str]) -> String {
    let (kind, size, more) = match &entry.kind {
        EntryKind::File { size } => ('-', bytes(size.unwrap_or(0)), String::new()),
        EntryKind::Folder => ('d', String::new(), "/".to_owned()),
        EntryKind::Symlink { target } => ('l', String::new(), format!(" -> {}", Printable(target))),
        EntryKind::HardLink { to } => ('-', String::new(), format!(" = {}", Printable(to))),
    };
    // No time is told of a folder that a peer shares.
    let (time, rights) = match rights {
        [] => (day_and_time(entry.modified), String::new()),
        rights => (String::new(), format!("  {}", rights.join(", "))),
    };
    format!(
        "{kind}{} {size:>8}  {time:16}  {}{more}{rights}",
        permissions(entry.mode),
        Printable(&entry.path)
    )
}

fn permissions(mode: u32) -> String {
    let letter = |bit: u32| if mode & (1 << bit) == 0 { '-' } else { ['x', 'w', 'r'][bit as usize % 3] };
    (0..9).rev().map(letter).collect()
}

/// A time of modification as `2026-11-22 18:45`, UTC. Days into dates: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub(crate) fn day_and_time(nanoseconds: i64) -> String {
    let seconds = nanoseconds.div_euclid(1_000_000_000);
    let (days, second) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let time = Duration::from_secs(second.unsigned_abs());
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", time.as_secs() / 3600, time.as_secs() / 60 % 60)
}

/// The same for programs. Paths are escaped as on a terminal.
fn as_json(entry: &EntryMessage, rights: &[&str]) -> String {
    let (kind, size, to) = match &entry.kind {
        EntryKind::File { size } => ("file", *size, None),
        EntryKind::Folder => ("folder", None, None),
        EntryKind::Symlink { target } => ("symlink", None, Some(target)),
        EntryKind::HardLink { to } => ("hard-link", None, Some(to)),
    };
    let mut line = json!({
        "path": Printable(&entry.path).to_string(),
        "kind": kind,
        "bytes": size,
        "mode": format!("{:04o}", entry.mode),
        "modified_nanoseconds": rights.is_empty().then_some(entry.modified),
        "to": to.map(|to| Printable(to).to_string()),
    });
    if !rights.is_empty() {
        line["rights"] = json!(rights);
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_permissions_are_as_ls_shows_them() {
        assert_eq!(day_and_time(0), "1970-01-01 00:00");
        assert_eq!(day_and_time(1_795_373_100_000_000_000), "2026-11-22 18:45");
        assert_eq!(day_and_time(951_782_400_000_000_000), "2000-02-29 00:00");
        assert_eq!(day_and_time(-1), "1969-12-31 23:59");
        assert_eq!(permissions(0o640), "rw-r-----");
        assert_eq!(permissions(0o755), "rwxr-xr-x");
    }

    #[test]
    fn a_shared_folder_has_rights_and_no_time() {
        let entry = |mode, modified| EntryMessage::new(b"inbox".to_vec(), EntryKind::Folder, mode, modified);
        let rest = " ".repeat(8 + 2 + 16 + 2 + 1);
        assert_eq!(
            as_text(&entry(READ | WRITE, 0), &["read", "write"]),
            format!("drwx------{rest}inbox/  read, write")
        );
        let line = as_text(&entry(0o755, 951_782_400_000_000_000), &[]);
        assert_eq!(line, "drwxr-xr-x           2000-02-29 00:00  inbox/");
        let time = |rights: &[&str]| {
            let line: serde_json::Value = serde_json::from_str(&as_json(&entry(0o755, 7), rights)).unwrap();
            line["modified_nanoseconds"].clone()
        };
        assert_eq!((time(&[]), time(&["read"])), (json!(7), json!(null)));
    }

    #[test]
    fn the_rights_in_a_folder_are_named() {
        assert_eq!(rights(READ), ["read"]);
        assert_eq!(rights(READ | WRITE), ["read", "write", "delete"]);
        assert_eq!(rights(WRITE | NO_DELETE), ["write"]);
    }
}
