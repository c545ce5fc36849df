//! Files with a key: one line that only its owner may read.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use strait_keying::ParseKeyError;
use strait_keying::sessionless::KemKey;
use zeroize::Zeroizing;

use crate::web::WebToken;

/// A key file has some 45 bytes, at most 131 (the longest key in hex); more than this is another file.
const FILE_MAX: usize = 1024;
/// One with an ML-KEM-768 key has 3,201 bytes; more than this is another file.
const KEM_FILE_MAX: usize = 4096;
/// What is added to the name of the private key's file.
const KEM_SUFFIX: &str = ".ml-kem";

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// There is no such file.
    #[error("there is no key file {}; make one with `strait keygen --out {}`", path.display(), path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// There is no such file, and nothing here makes one.
    #[error("there is no key file {}; write the key to it, as hex like for `ip xfrm` or as base64", path.display())]
    NoSecret {
        /// The file.
        path: PathBuf,
    },
    /// Others than the owner may read it.
    #[error("the key file {} is readable by others (mode {mode:03o}); run `chmod 600 {}`", path.display(), path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another user could have put it there, and reads it.
    #[error("the key file {} belongs to user {owner}; run `chown {} {}`, after a look at what it holds", path.display(), crate::privileges::user(), path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The number of its owner.
        owner: u32,
    },
    /// A pipe, a device or a folder.
    #[error("the key file {} is not a regular file", path.display())]
    NotAFile {
        /// What it is called.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read the key file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It holds something else.
    #[error("the key file {} holds no private key: it {error}; make one with `strait keygen`", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: ParseKeyError,
    },
    /// It holds something else than an ML-KEM key.
    #[error("the key file {} holds no ML-KEM-768 key; move it away, and make a key and a card with `strait keys card`", path.display())]
    NotAKemKey {
        /// The file.
        path: PathBuf,
    },
    /// It holds something else than a token for the page.
    #[error("the file {} holds no token for the page, which is one line of 16 to 256 letters, digits and signs; make one with `strait keygen --out`", path.display())]
    NotAWebToken {
        /// The file.
        path: PathBuf,
    },
    /// It was not looked at, because only a text was checked.
    #[error("the key file was not read")]
    Skipped,
}

/// The private key, or the token, in the file `path`, which the owner of the configuration may own.
pub(super) fn read<K: FromStr<Err = ParseKeyError>>(path: &Path, trusted: u32) -> Result<K, KeyFileError> {
    let text = read_text(path, trusted).map_err(|error| match error {
        KeyFileError::NoSecret { path } => KeyFileError::Missing { path },
        other => other,
    })?;
    text.parse().map_err(|error| KeyFileError::NotAKey { path: path.to_owned(), error })
}

/// The token of the page in the file `path`, as [`read`].
pub(super) fn read_web_token(path: &Path, trusted: u32) -> Result<WebToken, KeyFileError> {
    let text = read_text(path, trusted).map_err(|error| match error {
        KeyFileError::NoSecret { path } => KeyFileError::Missing { path },
        other => other,
    })?;
    WebToken::new(text.trim_end()).ok_or_else(|| KeyFileError::NotAWebToken { path: path.to_owned() })
}

/// Where the ML-KEM key of the node is whose private key is in the file `private`: beside it.
#[must_use]
pub fn kem_key_file(private: &Path) -> PathBuf {
    let mut name = private.as_os_str().to_owned();
    name.push(KEM_SUFFIX);
    name.into()
}

/// The ML-KEM key in the file `path`, as [`read`]; nothing where there is no such file.
pub(super) fn read_kem(path: &Path, trusted: u32) -> Result<Option<KemKey>, KeyFileError> {
    let text = match read_limited::<KEM_FILE_MAX>(path, trusted) {
        Err(KeyFileError::NoSecret { .. }) => return Ok(None),
        text => text?,
    };
    text.parse().map(Some).map_err(|_| KeyFileError::NotAKemKey { path: path.to_owned() })
}

/// What stands in the file `path`, which the owner of the configuration may own; nothing when it is no text.
///
/// Links are followed, as to a folder of secrets: what is read is looked at, not its name. It belongs to root, to the
/// user of this process, or to `trusted`, who could name any file as the key.
pub(super) fn read_text(path: &Path, trusted: u32) -> Result<Zeroizing<String>, KeyFileError> {
    read_limited::<FILE_MAX>(path, trusted)
}

fn read_limited<const MAX: usize>(path: &Path, trusted: u32) -> Result<Zeroizing<String>, KeyFileError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => KeyFileError::NoSecret { path: path.to_owned() },
        _ => KeyFileError::Unreadable { path: path.to_owned(), source },
    };
    // A pipe without a writer would be waited for.
    let mut options = OpenOptions::new();
    let mut file = options.read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    let (mode, owner) = (found.mode(), found.uid());
    if !found.is_file() {
        return Err(KeyFileError::NotAFile { path: path.to_owned() });
    }
    if ![0, crate::privileges::user(), trusted].contains(&owner) {
        return Err(KeyFileError::Foreign { path: path.to_owned(), owner });
    }
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Open { path: path.to_owned(), mode: mode & 0o777 });
    }
    // Filled in place, so that no copy is left behind by growing.
    let mut bytes = Zeroizing::new([0_u8; MAX]);
    let mut len = 0;
    while let Some(room) = bytes.get_mut(len..).filter(|room| !room.is_empty()) {
        match file.read(room).map_err(unreadable)? {
            0 => break,
            more => len += more,
        }
    }
    let text = str::from_utf8(bytes.get(..len).unwrap_or_default()).unwrap_or_default();
    Ok(Zeroizing::new(text.to_owned()))
}
