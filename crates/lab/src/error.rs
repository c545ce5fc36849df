//! Why a table could not be made.

use std::io;
use std::path::PathBuf;

/// Why a table could not be made, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder or a file could not be read.
    #[error("cannot read {}: {source}\n  name a folder of files with --corpus, or leave it out for the generated ones", path.display())]
    Unreadable {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A folder holds nothing that blocks could be drawn from.
    #[error(
        "{} has no file of at least {needed} bytes, the longest block; {longest}\n  \
         name a folder with longer files, or leave --corpus out for the generated ones",
        folder.display()
    )]
    NothingLongEnough {
        /// The folder.
        folder: PathBuf,
        /// Bytes of the longest block.
        needed: usize,
        /// The longest file that is there, in words.
        longest: String,
    },
    /// A file that belongs to the paper's benchmark is not whole.
    #[error(
        "{} has {len} bytes and the longest block {needed}: it is not the file of the Calgary corpus\n  \
         fetch it again, or take it out of the folder",
        path.display()
    )]
    Short {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
        /// Bytes of the longest block.
        needed: usize,
    },
    /// An algorithm did not do what it is measured at.
    #[error("{algorithm} did not {doing}: {cause}\n  this is a mistake in the program: please report it")]
    Refused {
        /// The algorithm's name.
        algorithm: String,
        /// What it was to do.
        doing: &'static str,
        /// What it said.
        cause: String,
    },
    /// A trace of packets could not be read, or holds none.
    #[error("{} {why}\n  name a capture, comma-separated values with columns size and dst, or a text trace", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// What is the matter with it.
        why: String,
    },
    /// A file that is to be sent or stored cannot be used.
    #[error("{} {why}\n  name a file that can be read, or leave --file out for the generated ones", path.display())]
    GivenFile {
        /// The file.
        path: PathBuf,
        /// What is the matter with it.
        why: String,
    },
    /// The kernel does not say how busy it is.
    #[error("cannot read how busy the processors are: {0}\n  mount /proc")]
    NoLoad(io::Error),
    /// Hosts, links, daemons or streams failed, or a signal asked for the end.
    #[error(transparent)]
    Testbed(#[from] strait_testbed::Error),
}

impl Error {
    /// What was attempted when the system refused.
    pub(crate) fn doing(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = what.into();
        move |source| Error::Testbed(strait_testbed::Error::System { doing, source })
    }

    /// `algorithm` was to do something and said something else.
    pub(crate) fn refused(
        algorithm: impl ToString,
        doing: &'static str,
    ) -> impl FnOnce(Box<dyn std::error::Error>) -> Error {
        let algorithm = algorithm.to_string();
        move |cause| Error::Refused { algorithm, doing, cause: cause.to_string() }
    }
}
