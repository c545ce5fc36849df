//! What a client asks for.

use super::fields::{BodyReader, MessageFault, checked_path, put_string, put_strings};
use super::{MAX_LIST, MAX_PATH};
use crate::path::MAX_NAME_LEN;

/// How a transfer is done. Both ends use the patterns: the sender leaves out what they exclude, the receiver does not remove it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferOptions {
    /// Names that the sender does not have are removed.
    pub delete: bool,
    /// Nothing is written or removed.
    pub dry_run: bool,
    /// Extended attributes go too.
    pub xattrs: bool,
    /// A file of the same size and time is compared by its hash.
    pub checksum: bool,
    /// Patterns as rsync has them, in order, each with `+ ` or `- ` before it.
    pub patterns: Vec<Vec<u8>>,
    /// A file below the place that is used as the base of patches. Empty: the file of the same name.
    pub like: Vec<u8>,
}

/// What a client asks for. A *place* is a path below the folder, or nothing for the folder itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The client sends entries below a place.
    Push {
        /// The folder's name.
        folder: Vec<u8>,
        /// The place.
        place: Vec<u8>,
        /// How.
        options: TransferOptions,
    },
    /// The server sends these paths.
    Pull {
        /// The folder's name.
        folder: Vec<u8>,
        /// Paths below the folder; an empty one is the folder itself.
        paths: Vec<Vec<u8>>,
        /// How.
        options: TransferOptions,
    },
    /// The server sends what is in a place, without contents: entries, then the end.
    List {
        /// The folder's name. Empty: the folders that the peer may read or write.
        folder: Vec<u8>,
        /// The place.
        place: Vec<u8>,
        /// Whether what is in folders is listed too.
        deep: bool,
    },
}

/// The client's first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The transfer's name: 16 random bytes, the same in every resume.
    pub transfer: [u8; 16],
    /// The client's half of the key for chunk ids: 32 random bytes.
    pub nonce: [u8; 32],
    /// What is asked.
    pub asked: Asked,
}

impl TransferOptions {
    fn parse(body: &mut BodyReader<'_>) -> Result<TransferOptions, MessageFault> {
        let flags = body.byte()?;
        if flags > 15 {
            return Err(MessageFault::Unknown);
        }
        let flag = |bit: u8| flags & bit != 0;
        let patterns = body.strings(MAX_LIST)?;
        let like = place(body)?;
        Ok(TransferOptions {
            delete: flag(1),
            dry_run: flag(2),
            xattrs: flag(4),
            checksum: flag(8),
            patterns,
            like,
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        out.push(bit(self.delete, 1) | bit(self.dry_run, 2) | bit(self.xattrs, 4) | bit(self.checksum, 8));
        put_strings(out, &self.patterns);
        put_string(out, &self.like);
    }
}

/// A place: nothing, or a path.
fn place(body: &mut BodyReader<'_>) -> Result<Vec<u8>, MessageFault> {
    let place = body.string(MAX_PATH)?;
    if !place.is_empty() {
        checked_path(place)?;
    }
    Ok(place.to_vec())
}

impl Asked {
    fn parse(body: &mut BodyReader<'_>) -> Result<Asked, MessageFault> {
        let kind = body.byte()?;
        let folder = body.string(MAX_NAME_LEN)?.to_vec();
        Ok(match kind {
            1 => Asked::Push { folder, place: place(body)?, options: TransferOptions::parse(body)? },
            2 => {
                let paths = body.strings(MAX_LIST)?;
                let (empty, named): (Vec<_>, Vec<_>) = paths.iter().partition(|path| path.is_empty());
                named.iter().try_for_each(|path| checked_path(path))?;
                if empty.len() + named.len() == 0 {
                    return Err(MessageFault::Bound);
                }
                Asked::Pull { folder, paths, options: TransferOptions::parse(body)? }
            }
            3 => Asked::List { folder, place: place(body)?, deep: body.flag()? },
            _ => return Err(MessageFault::Unknown),
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Asked::Push { folder, place, options } => {
                out.push(1);
                put_string(out, folder);
                put_string(out, place);
                options.put(out);
            }
            Asked::Pull { folder, paths, options } => {
                out.push(2);
                put_string(out, folder);
                put_strings(out, paths);
                options.put(out);
            }
            Asked::List { folder, place, deep } => {
                out.push(3);
                put_string(out, folder);
                put_string(out, place);
                out.push(u8::from(*deep));
            }
        }
    }
}

impl Hello {
    pub(super) fn parse(body: &mut BodyReader<'_>) -> Result<Hello, MessageFault> {
        Ok(Hello { transfer: body.fixed()?, nonce: body.fixed()?, asked: Asked::parse(body)? })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.transfer);
        out.extend(self.nonce);
        self.asked.put(out);
    }
}
