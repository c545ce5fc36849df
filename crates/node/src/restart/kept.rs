//! The configuration that a daemon runs with, kept to go back to.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::{RestartError, RunningDaemon};
use crate::config::FILE_MAX;

/// The end of the name of a copy.
const BEFORE: &str = ".before";
/// For its owner only: it may hold keys.
const MODE: u32 = 0o600;

/// The file with the configuration that a daemon runs with.
#[derive(Debug)]
pub(super) struct KeptConfig {
    pub(super) file: PathBuf,
    is_copy: bool,
}

impl KeptConfig {
    /// Names the daemon's own file, or writes a copy beside it if that says something else now. The file that comes `next` is not replaced.
    pub(super) fn of(daemon: &RunningDaemon, next: &Path) -> Result<KeptConfig, RestartError> {
        let file = &daemon.file;
        let changed = daemon.text.as_ref().filter(|text| !read(file).is_ok_and(|found| *found == ***text));
        let Some(text) = changed else { return Ok(KeptConfig { file: file.clone(), is_copy: false }) };
        let copy = before(&original(file));
        let failed = |why: String| {
            RestartError::Unfit(format!(
                "nothing was done to the tunnel, as the configuration that it runs with cannot be kept in {}: {why}",
                copy.display()
            ))
        };
        if copy == next {
            return Err(failed("that is the new configuration; give it another name".to_owned()));
        }
        // The folder's owner, where there is no file any more.
        let owner = fs::metadata(file).or_else(|_| fs::metadata(file.parent().unwrap_or(file)));
        owner
            .and_then(|owner| write_beside(&copy, &owner, text))
            .map_err(|error| failed(error.to_string()))?;
        Ok(KeptConfig { file: copy, is_copy: true })
    }

    /// Removes the copy, if one was written.
    pub(super) fn forget(&self) {
        if self.is_copy {
            let _ = fs::remove_file(&self.file);
        }
    }
}

/// Reads a configuration, which may hold keys; no pipe or device, which could have no end.
pub(super) fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // All the room at once, so that no copy is left behind by growing.
    let room = usize::try_from(found.len().min(FILE_MAX)).unwrap_or(0) + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    let read = file.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    if u64::try_from(read).is_ok_and(|read| read > FILE_MAX) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// The path of the copy of the file at `path`.
pub(super) fn before(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BEFORE);
    name.into()
}

/// The path of the file that `path` is a copy of, if it is one.
pub(super) fn original(path: &Path) -> PathBuf {
    let name = path.to_str().and_then(|name| name.strip_suffix(BEFORE)).map(PathBuf::from);
    name.filter(|name| name.exists()).unwrap_or_else(|| path.to_owned())
}

/// Writes a file of this owner in one step, in place of one that is there, whatever that is.
pub(super) fn write_beside(path: &Path, owner: &Metadata, content: &[u8]) -> io::Result<()> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}", std::process::id()));
    let aside = Path::new(&aside);
    let mut file = File::options().write(true).create_new(true).mode(MODE).open(aside)?;
    let written = fchown(&file, Some(owner.uid()), Some(owner.gid()))
        .and_then(|()| file.set_permissions(PermissionsExt::from_mode(MODE)))
        .and_then(|()| file.write_all(content))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(aside, path));
    if written.is_err() {
        let _ = fs::remove_file(aside);
    }
    written
}
