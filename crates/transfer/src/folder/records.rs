//! What is written down of unfinished files, one record after the other: the bytes.
//!
//! A record is the length of its body (two bytes), the body, and the first eight bytes of the body's BLAKE3 hash. The body's first byte
//! says what it is; numbers are big-endian. A record that was not written to its end is where reading ends.

use crate::path::{EntryPath, MAX_PATH_LEN};
use crate::pieces::Subtree;

/// A body at most: the longest is a beginning with the longest path.
const MAX_BODY: usize = 1 + 4 + 8 + 1 + 8 + MAX_PATH_LEN;

/// What stands behind a body.
#[must_use]
pub fn check(body: &[u8]) -> [u8; 8] {
    let hash = *blake3::hash(body).as_bytes();
    *hash.first_chunk().expect("32 bytes")
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferRecord {
    /// The first record: which transfer this is.
    Head {
        /// The transfer's name.
        transfer: [u8; 16],
    },
    /// A file begins.
    Begin {
        /// The number of the file that has its bytes.
        slot: u32,
        /// Its length in bytes, if it is known.
        size: Option<u64>,
        /// The state of the source, as the sender names it.
        version: [u8; 8],
        /// Where it will be.
        path: EntryPath,
    },
    /// Pieces of it are on the disk.
    Held {
        /// As in `Begin`.
        slot: u32,
        /// Which.
        subtree: Subtree,
    },
    /// It is under its name, or given up.
    Dropped {
        /// As in `Begin`.
        slot: u32,
    },
    /// A file is under its name, where the sender may not read.
    Given {
        /// The first bytes of the hash of its path.
        path: [u8; 16],
        /// The first bytes of the hash of its length, time and permissions.
        state: [u8; 8],
    },
}

impl TransferRecord {
    /// Appends the record to `out`.
    pub fn put(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend([0; 2]);
        self.put_body(out);
        let body = &out[begin + 2..];
        let (len, check) = (u16::try_from(body.len()).expect("MAX_BODY fits"), check(body));
        out.extend(check);
        out[begin..begin + 2].copy_from_slice(&len.to_be_bytes());
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        match self {
            TransferRecord::Head { transfer } => {
                out.push(0);
                out.extend(transfer);
            }
            TransferRecord::Begin { slot, size, version, path } => {
                out.push(1);
                out.extend(slot.to_be_bytes());
                out.extend(version);
                out.push(u8::from(size.is_some()));
                out.extend(size.unwrap_or(0).to_be_bytes());
                out.extend(path.as_bytes());
            }
            TransferRecord::Held { slot, subtree } => {
                out.push(5);
                out.extend(slot.to_be_bytes());
                out.push(subtree.level());
                out.extend(subtree.first().to_be_bytes());
                out.extend(subtree.value());
            }
            TransferRecord::Dropped { slot } => {
                out.push(3);
                out.extend(slot.to_be_bytes());
            }
            TransferRecord::Given { path, state } => {
                out.push(4);
                out.extend(path);
                out.extend(state);
            }
        }
    }

    /// The first record of `bytes`, and what follows it. None at the end, and where a record is not whole or not right.
    #[must_use]
    pub fn take(bytes: &[u8]) -> Option<(TransferRecord, &[u8])> {
        let (len, rest) = bytes.split_first_chunk::<2>()?;
        let len = usize::from(u16::from_be_bytes(*len));
        let (body, rest) = rest.split_at_checked(len).filter(|_| len <= MAX_BODY)?;
        let (found, rest) = rest.split_first_chunk()?;
        let right = check(body) == *found;
        Some((right.then(|| TransferRecord::body(body)).flatten()?, rest))
    }

    fn body(body: &[u8]) -> Option<TransferRecord> {
        let (what, body) = body.split_first()?;
        if *what == 0 {
            return Some(TransferRecord::Head { transfer: body.try_into().ok()? });
        }
        if *what == 4 {
            let (path, state) = body.split_first_chunk()?;
            return Some(TransferRecord::Given { path: *path, state: state.try_into().ok()? });
        }
        let (slot, body) = body.split_first_chunk()?;
        let slot = u32::from_be_bytes(*slot);
        match what {
            1 => {
                let (version, body) = body.split_first_chunk()?;
                let (known, body) = body.split_first()?;
                let (size, path) = body.split_first_chunk()?;
                let size = match (known, u64::from_be_bytes(*size)) {
                    (0, 0) => None,
                    (1, size) => Some(size),
                    _ => return None,
                };
                let path = EntryPath::new(path).ok()?;
                Some(TransferRecord::Begin { slot, size, version: *version, path })
            }
            // 2 had pieces of 1 MiB.
            5 => {
                let (level, body) = body.split_first()?;
                let (first, value) = body.split_first_chunk()?;
                let value = value.try_into().ok()?;
                let subtree = Subtree::new(u64::from_be_bytes(*first), *level, value)?;
                Some(TransferRecord::Held { slot, subtree })
            }
            3 => body.is_empty().then_some(TransferRecord::Dropped { slot }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_record() -> impl Strategy<Value = TransferRecord> {
        let path = proptest::collection::vec(1..=255_u8, 1..60)
            .prop_filter_map("a path", |it| EntryPath::new(it).ok());
        let subtree = (any::<u32>(), 0..44_u8, any::<[u8; 32]>()).prop_map(|(first, level, value)| {
            Subtree::new(u64::from(first) >> level << level, level, value).unwrap()
        });
        prop_oneof![
            any::<[u8; 16]>().prop_map(|transfer| TransferRecord::Head { transfer }),
            (any::<u32>(), any::<Option<u64>>(), any::<[u8; 8]>(), path)
                .prop_map(|(slot, size, version, path)| TransferRecord::Begin { slot, size, version, path }),
            (any::<u32>(), subtree).prop_map(|(slot, subtree)| TransferRecord::Held { slot, subtree }),
            any::<u32>().prop_map(|slot| TransferRecord::Dropped { slot }),
            any::<([u8; 16], [u8; 8])>().prop_map(|(path, state)| TransferRecord::Given { path, state }),
        ]
    }

    proptest! {
        #[test]
        fn a_record_reads_as_it_was_written(record in any_record(), next in any_record()) {
            let mut bytes = Vec::new();
            record.put(&mut bytes);
            let len = bytes.len();
            next.put(&mut bytes);
            let (read, rest) = TransferRecord::take(&bytes).unwrap();
            prop_assert_eq!(&read, &record);
            prop_assert_eq!(rest.len(), bytes.len() - len);
            for end in 0..len {
                prop_assert!(TransferRecord::take(&bytes[..end]).is_none(), "{} of {} bytes", end, len);
            }
            for at in 0..len * 8 {
                let mut other = bytes[..len].to_vec();
                other[at / 8] ^= 1 << (at % 8);
                prop_assert_ne!(TransferRecord::take(&other).map(|(read, _)| read), Some(record.clone()), "bit {}", at);
            }
        }

        #[test]
        fn what_is_read_is_written_the_same_way(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            // A body that is right, with whatever in it.
            let mut framed = u16::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
            framed.extend(&bytes);
            framed.extend(check(&bytes));
            if let Some((record, rest)) = TransferRecord::take(&framed) {
                prop_assert!(rest.is_empty());
                let mut again = Vec::new();
                record.put(&mut again);
                prop_assert_eq!(again, framed);
            }
        }
    }

    #[test]
    fn the_longest_path_can_be_written_down() {
        let path = EntryPath::new(vec![b"a".repeat(255); 16].join(&b'/')).unwrap();
        assert_eq!(path.as_bytes().len(), MAX_PATH_LEN);
        let record = TransferRecord::Begin { slot: 1, size: Some(5), version: [3; 8], path };
        let mut bytes = Vec::new();
        record.put(&mut bytes);
        assert_eq!(TransferRecord::take(&bytes).unwrap().0, record);
    }
}
