//! The order of bytes in the numbers of a capture: that of the machine that wrote it.

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The 16 bits at `at`; 0 beyond the end of `bytes`.
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = array(bytes, at);
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }

    /// The 32 bits at `at`; 0 beyond the end of `bytes`.
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = array(bytes, at);
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    /// The 64 bits at `at`; 0 beyond the end of `bytes`.
    pub(super) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let bytes = array(bytes, at);
        match self {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        }
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}
