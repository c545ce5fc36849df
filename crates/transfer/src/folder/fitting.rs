//! The paths of entries whose sender may not learn what is there: nothing is in their way.
//!
//! `report` becomes `report.other-1` where a folder has its name, or a folder `report` where a file has it. What is there stays, and the
//! sender hears the same as without it. The same entry gets the same name again.

use rustix::fs::{Access, AtFlags, FileType, accessat};
use rustix::process::geteuid;

use super::{FolderError, FolderRules};
use crate::beneath::Beneath;
use crate::path::{EntryPath, MAX_NAME_LEN};

/// Names that are tried for one entry. Only who wants to be in the way makes so many.
const TRIES: u32 = 100;
/// The text between a name and its number.
const END: &str = ".other-";

/// Returns the path under which an entry goes. Where the rules hide what is there, a number stands behind each name that something of
/// another kind has; else it is the entry's own.
pub(crate) fn fit(
    beneath: &Beneath,
    rules: &FolderRules,
    path: &EntryPath,
    is_folder: bool,
) -> Result<EntryPath, FolderError> {
    let mut fitted = None;
    let mut names = path.as_bytes().split(|byte| *byte == b'/').filter(|_| rules.hidden).peekable();
    while let Some(name) = names.next() {
        let is_folder = is_folder || names.peek().is_some();
        fitted = Some(fit_name(beneath, fitted.as_ref(), name, is_folder)?);
    }
    Ok(fitted.unwrap_or_else(|| path.clone()))
}

fn fit_name(
    beneath: &Beneath,
    above: Option<&EntryPath>,
    name: &[u8],
    is_folder: bool,
) -> Result<EntryPath, FolderError> {
    for number in 0..TRIES {
        let name = numbered(name, number);
        let path = above.map_or_else(|| EntryPath::new(&name[..]), |above| above.join(&name))?;
        if fits(beneath, &path, is_folder)? {
            return Ok(path);
        }
    }
    Err(FolderError::InTheWay)
}

/// True if a name is one that an entry got since something else had its own.
pub(crate) fn is_numbered(name: &[u8]) -> bool {
    let at = name.windows(END.len()).rposition(|part| part == END.as_bytes());
    at.is_some_and(|at| name[at + END.len()..].iter().all(u8::is_ascii_digit))
}

/// A name with `.other-` and a number behind it, cut where that would be too long.
fn numbered(name: &[u8], number: u32) -> Vec<u8> {
    let end = if number == 0 { String::new() } else { format!("{END}{number}") };
    [&name[..name.len().min(MAX_NAME_LEN - end.len())], end.as_bytes()].concat()
}

/// True if an entry can have this path: nothing has it, or something that it may replace, or a folder that it may be in.
fn fits(beneath: &Beneath, path: &EntryPath, is_folder: bool) -> Result<bool, FolderError> {
    let because = |error| FolderError::new("look at a name", error);
    let Some(there) = beneath.status(path).map_err(because)? else { return Ok(true) };
    if there.kind() != FileType::Directory || !is_folder {
        return Ok(there.kind() != FileType::Directory && !is_folder);
    }
    let (parent, name) = beneath.parent(path).map_err(because)?;
    // In a folder of another user on this host, the sender would hear that it may not write.
    let may_write = || accessat(parent, name, Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty()).is_ok();
    Ok(there.attributes().owner.0 == geteuid().as_raw() || may_write())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_number_is_no_longer_than_a_name_may_be() {
        assert_eq!(numbered(b"name", 0), b"name");
        assert!(
            is_numbered(&numbered(b"name", 7)) && !is_numbered(b"name.7") && !is_numbered(b"name.other-x")
        );
        assert_eq!(numbered(b"name", 7), b"name.other-7");
        assert_eq!(numbered(&[b'n'; 255], 12), [&[b'n'; 246][..], b".other-12"].concat());
    }
}
