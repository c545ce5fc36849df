//! What a configuration is read beside: the files it names, and who may read the file itself.

use std::cell::Cell;
use std::ops::Range;
use std::path::{Path, PathBuf};

use strait_keying::{PresharedToken, PrivateKey, PublicKey};
use zeroize::Zeroizing;

use super::problem::Problem;
use super::reader::Section;
use super::{KeyFileError, key_file};

/// Whose a file is, and what others may do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// The number of its owner.
    pub(super) owner: u32,
    /// Its permission bits.
    pub(super) mode: u32,
}

/// The files around a configuration.
pub(super) trait Files {
    /// The public half of the private key in a file.
    fn own_key(&self, path: &Path) -> Result<PublicKey, KeyFileError>;
    /// Whether the pre-shared token in a file can be read.
    fn token(&self, path: &Path) -> Result<(), KeyFileError>;
    /// Whether the token of the page in a file can be read.
    fn web_token(&self, path: &Path) -> Result<(), KeyFileError>;
    /// A manual key as it is written in a file.
    fn key_text(&self, path: &Path) -> Result<Zeroizing<String>, KeyFileError>;
    /// Whose the configuration itself is, and what others may do with it.
    fn access(&self) -> Access;
}

/// The files there are.
pub(super) struct OnDisk {
    /// Of the configuration.
    pub(super) access: Access,
    /// A private key that is known already, and is not read again.
    pub(super) known: Option<(PathBuf, PublicKey)>,
    /// Whether the tokens are known already, and are not read again.
    pub(super) token_known: bool,
}

impl Files for OnDisk {
    fn own_key(&self, path: &Path) -> Result<PublicKey, KeyFileError> {
        match &self.known {
            Some((known, key)) if known == path => Ok(*key),
            _ => key_file::read(path, self.access.owner).map(|key: PrivateKey| key.public()),
        }
    }

    fn token(&self, path: &Path) -> Result<(), KeyFileError> {
        if self.token_known {
            Ok(())
        } else {
            key_file::read(path, self.access.owner).map(|_: PresharedToken| ())
        }
    }

    fn web_token(&self, path: &Path) -> Result<(), KeyFileError> {
        if self.token_known { Ok(()) } else { key_file::read_web_token(path, self.access.owner).map(drop) }
    }

    fn key_text(&self, path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
        key_file::read_text(path, self.access.owner)
    }

    fn access(&self) -> Access {
        self.access
    }
}

/// The files there are, but for the node's own secrets.
pub(super) struct WithoutIdentity(pub(super) Access);

impl Files for WithoutIdentity {
    fn own_key(&self, _: &Path) -> Result<PublicKey, KeyFileError> {
        Err(KeyFileError::Skipped)
    }

    fn token(&self, _: &Path) -> Result<(), KeyFileError> {
        Ok(())
    }

    fn web_token(&self, _: &Path) -> Result<(), KeyFileError> {
        Ok(())
    }

    fn key_text(&self, path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
        key_file::read_text(path, self.0.owner)
    }

    fn access(&self) -> Access {
        self.0
    }
}

/// Only a text, without files.
pub(super) struct Nothing;

impl Files for Nothing {
    fn own_key(&self, _: &Path) -> Result<PublicKey, KeyFileError> {
        Err(KeyFileError::Skipped)
    }

    fn token(&self, _: &Path) -> Result<(), KeyFileError> {
        Err(KeyFileError::Skipped)
    }

    fn web_token(&self, _: &Path) -> Result<(), KeyFileError> {
        Err(KeyFileError::Skipped)
    }

    fn key_text(&self, _: &Path) -> Result<Zeroizing<String>, KeyFileError> {
        Err(KeyFileError::Skipped)
    }

    fn access(&self) -> Access {
        Access { owner: crate::privileges::user(), mode: 0o600 }
    }
}

/// Where a configuration is, and what is beside it.
pub(super) struct Beside<'a> {
    origin: &'a Path,
    pub(super) files: &'a dyn Files,
    /// Whether it was said that others may read the keys in it.
    told: Cell<bool>,
}

impl<'a> Beside<'a> {
    pub(super) const fn new(origin: &'a Path, files: &'a dyn Files) -> Beside<'a> {
        Beside { origin, files, told: Cell::new(false) }
    }

    /// A file's name, which counts from the configuration's folder.
    pub(super) fn path(&self, text: &str) -> PathBuf {
        self.origin.parent().unwrap_or(Path::new("")).join(text)
    }

    /// A key stands in the configuration itself, at `span`: once, others must not be able to read it.
    pub(super) fn holds_key(&self, section: &Section<'_>, span: Range<usize>) {
        let mode = self.files.access().mode;
        if mode & 0o077 != 0 && !self.told.replace(true) {
            section.note(span, Problem::OpenConfiguration { path: self.origin.to_owned(), mode });
        }
    }
}
