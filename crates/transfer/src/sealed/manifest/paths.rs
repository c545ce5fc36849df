//! Which names a manifest may have.

use super::ManifestError::{self, Malformed};

/// Bytes of a path, as Linux has them (`PATH_MAX`, limits.h), without the zero at the end.
pub const PATH_MAX: usize = 4095;
/// Bytes of one name (`NAME_MAX`, limits.h).
const NAME_MAX: usize = 255;

/// Checks that a path is relative, and leads down only: names that are neither empty nor `.` nor `..`.
///
/// # Errors
/// [`ManifestError::Malformed`] that says what is wrong.
pub fn check_path(path: &[u8]) -> Result<(), ManifestError> {
    if path.len() > PATH_MAX {
        return Err(Malformed("a path is too long"));
    }
    if path.contains(&0) {
        return Err(Malformed("a path has a zero byte"));
    }
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" => return Err(Malformed("a path has an empty name, or does not begin below the folder")),
            b"." | b".." => return Err(Malformed("a path leads out of the folder")),
            name if name.len() > NAME_MAX => return Err(Malformed("a name is too long")),
            _ => {}
        }
    }
    Ok(())
}
