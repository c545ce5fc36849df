//! The file with the secrets of a node's daily keys. It is beside that of its marks, whose lock is for both: two daemons with one key are
//! refused there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use strait_keying::PublicKey;
use strait_keying::sessionless::{DAILY_FILE_LEN, DailySlotWrite};
use zeroize::Zeroizing;

use crate::private_file::PrivateFileError;
use crate::{mark_file, private_file};

/// What the name of a file ends with.
const SUFFIX: &str = "daily";

/// The file of a node.
pub(crate) fn path(folder: &Path, node: &PublicKey) -> PathBuf {
    mark_file::named(folder, node, SUFFIX)
}

/// Opens the file at `path`, which is begun if there is none. Its folder is there.
///
/// # Errors
/// [`PrivateFileError`] with the remedy.
pub(crate) fn open(path: &Path) -> Result<File, PrivateFileError> {
    let file = private_file::open(path)?;
    file.set_len(u64::try_from(DAILY_FILE_LEN).unwrap_or(0)).map_err(PrivateFileError::io(path))?;
    Ok(file)
}

/// What is in it; wiped when dropped.
pub(crate) fn read(file: &File) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(vec![0; DAILY_FILE_LEN]);
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Writes slots in place, so that nothing stays of what is wiped as far as the file goes, and waits until it is safe.
pub(crate) fn write(file: &File, writes: &[DailySlotWrite]) -> io::Result<()> {
    writes.iter().try_for_each(|write| file.write_all_at(write.bytes.as_slice(), write.at))?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use strait_keying::PrivateKey;
    use strait_keying::sessionless::OwnDailyKeys;

    use super::*;

    #[test]
    fn secrets_are_found_again_by_their_owner_alone_and_wiped_in_place() {
        let folder = std::env::temp_dir().join(format!("strait-daily-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let node = PrivateKey::generate(&[1; 32]).public();
        let path = path(&folder, &node);
        let file = open(&path).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        let mut own = OwnDailyKeys::read(node, &read(&file).unwrap());
        assert_eq!(own.days(), None);
        let noon = 20_000 * 86_400 + 43_200;
        write(&file, &own.roll(noon, &[7; 32])).unwrap();
        let before = read(&file).unwrap();
        let again = OwnDailyKeys::read(node, &read(&open(&path).unwrap()).unwrap());
        assert_eq!(again.days(), own.days());
        // A year later no secret of then is in the file.
        write(&file, &own.roll(noon + 365 * 86_400, &[8; 32])).unwrap();
        let after = read(&file).unwrap();
        for slot in before.as_chunks::<64>().0.iter().filter(|slot| **slot != [0; 64]) {
            assert!(!after.windows(32).any(|bytes| bytes == &slot[4..36]));
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(open(&path).unwrap_err().to_string().contains("chmod 600"));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(matches!(open(&path), Err(PrivateFileError::Io { .. })));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
