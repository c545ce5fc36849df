//! What several processes that use one store need.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{ASIDE, remove};

/// The file that is locked while names in the store change.
const LOCK: &str = "store.lock";
/// The file with the secret of a store that has one of its own.
const SECRET: &str = "store.secret";

/// Waits until no other changes names in the store of this folder.
pub(super) fn lock(folder: &Path) -> io::Result<File> {
    let path = folder.join(LOCK);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Whether the process that wrote a copy has ended.
pub(super) fn is_left(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The secret of a store that has one of its own; where there is none, `random` becomes it. Called with the store locked.
pub(super) fn own_secret(folder: &Path, random: [u8; 32]) -> io::Result<[u8; 32]> {
    let path = folder.join(SECRET);
    match fs::read(&path).map(<[u8; 32]>::try_from) {
        Ok(Ok(secret)) => Ok(secret),
        // Another program left another thing: what was sealed with the secret before is lost.
        Ok(Err(_)) => write_secret(folder, &path, random),
        Err(error) if error.kind() == io::ErrorKind::NotFound => write_secret(folder, &path, random),
        Err(error) => Err(error),
    }
}

/// Writes a new secret, whole or not at all.
fn write_secret(folder: &Path, path: &Path, secret: [u8; 32]) -> io::Result<[u8; 32]> {
    let aside = folder.join(format!("{SECRET}.{ASIDE}"));
    remove(&aside)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
    file.write_all(&secret)?;
    file.sync_data()?;
    fs::rename(&aside, path)?;
    Ok(secret)
}
