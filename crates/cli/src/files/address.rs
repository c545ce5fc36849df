//! Where files go to or come from: `PEER`, `PEER:FOLDER`, `PEER:FOLDER/PATH`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use strait_transfer::path::EntryPath;

use super::stream::{FILES, StreamTarget};
use crate::failure::{Code, Failure};

/// A place at a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerPlace {
    /// The peer's name in the configuration.
    pub(super) peer: String,
    /// The folder's name. Empty: none was said behind a colon.
    pub(super) folder: Vec<u8>,
    /// A path below the folder. Empty: the folder itself.
    pub(super) path: Vec<u8>,
}

/// The folder that is meant where only a peer is said.
const INBOX: &[u8] = b"inbox";

impl PeerPlace {
    /// Reads an address. Slashes at the end of the path say nothing.
    pub(super) fn parse(address: &OsStr) -> Result<PeerPlace, Failure> {
        let bytes = address.as_bytes();
        let (peer, rest) = match bytes.iter().position(|byte| *byte == b':') {
            Some(colon) => (&bytes[..colon], Some(&bytes[colon + 1..])),
            None => (bytes, None),
        };
        let fail = || {
            Failure::new(format!("`{}` is no place at a peer", address.display()))
                .remedy("write PEER, PEER:FOLDER or PEER:FOLDER/PATH")
                .code(Code::Environment)
        };
        let peer = std::str::from_utf8(peer).ok().filter(|peer| !peer.is_empty()).ok_or_else(fail)?;
        let (folder, path) = match rest {
            None => (INBOX, &[][..]),
            Some(rest) => match rest.iter().position(|byte| *byte == b'/') {
                Some(slash) => (&rest[..slash], trimmed(&rest[slash + 1..])),
                None => (rest, &[][..]),
            },
        };
        if folder.is_empty() && !path.is_empty() || folder.len() > usize::from(u8::MAX) {
            return Err(fail());
        }
        if !path.is_empty()
            && let Err(error) = EntryPath::new(path)
        {
            return Err(Failure::new(format!("`{}` is no place at a peer: {error}", address.display()))
                .remedy("a path goes down from the folder, without `.`, `..` and `//`")
                .code(Code::Environment));
        }
        Ok(PeerPlace { peer: peer.to_owned(), folder: folder.to_vec(), path: path.to_vec() })
    }

    /// What a stream to it goes to.
    pub(super) fn target(&self) -> StreamTarget<'_> {
        StreamTarget { peer: &self.peer, service: FILES, name: &self.folder }
    }

    /// The last name of the path, or of the folder.
    pub(super) fn name(&self) -> &[u8] {
        self.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }
}

/// A path without the slashes at its end.
fn trimmed(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte != b'/').map_or(&[], |last| &path[..=last])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (address, peer, folder, path) in [
            ("b", "b", "inbox", ""),
            ("b:", "b", "", ""),
            ("b:docs", "b", "docs", ""),
            ("b:docs/", "b", "docs", ""),
            ("b:docs/x/y:z", "b", "docs", "x/y:z"),
        ] {
            let place = PeerPlace::parse(address.as_ref()).unwrap();
            let expected = PeerPlace { peer: peer.to_owned(), folder: folder.into(), path: path.into() };
            assert_eq!(place, expected, "{address}");
        }
        for wrong in ["", ":docs", "b:/x", "b:docs/../x", "b:docs//x", "b:docs/./x", "b:docs/.."] {
            assert!(PeerPlace::parse(wrong.as_ref()).is_err(), "{wrong}");
        }
    }
}
