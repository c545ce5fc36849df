//! The list of certificates that are no longer good: numbered, dated and signed.
//!
//! ```text
//! version u8 | number u64 | issued u64 | count u32 | serial u64 | .. | signature (64)
//! ```

use std::sync::Arc;

use crate::{PrivateKey, PublicKey, SIGNATURE_LEN, signed_fields};

const VERSION: u8 = 1;
const LABEL: &[u8] = b"strait revocation list v1\0";
/// Bytes before the serial numbers.
const FIXED: usize = 1 + 8 + 8 + 4;
/// Most serial numbers: of certificates that have expired none is needed, so this is for fleets of some 100,000 of which
/// half lose their keys within a certificate's life.
pub const REVOKED_MAX: usize = 65_536;
/// Most bytes of a list.
pub const LIST_MAX: usize = FIXED + 8 * REVOKED_MAX + SIGNATURE_LEN;

/// What is no revocation list, or none of this authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    /// It is of another version.
    #[error("is a revocation list of version {0}, of which this program knows only 1")]
    Version(u8),
    /// The authority did not sign it.
    #[error("is a revocation list that this authority did not sign, or it was changed")]
    Signature,
    /// Its length is not what its count says, or the serial numbers do not ascend.
    #[error("is a malformed revocation list")]
    Malformed,
    /// More serial numbers than a list has room for.
    #[error("has more than {REVOKED_MAX} serial numbers; let certificates expire sooner")]
    TooLong,
}

/// A list that an authority signed: one that exists was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationList {
    number: u64,
    issued: u64,
    serials: Vec<u64>,
    bytes: Arc<[u8]>,
}

impl RevocationList {
    /// What is signed: this, then all bytes before the signature.
    pub const LABEL: &[u8] = LABEL;

    /// Signs a list with `number`, larger than that of each before it, made at `issued`, seconds since 1970-01-01 0:00 UTC.
    ///
    /// # Errors
    /// [`ListError::TooLong`].
    pub fn issue(
        authority: &PrivateKey,
        number: u64,
        issued: u64,
        serials: impl IntoIterator<Item = u64>,
    ) -> Result<RevocationList, ListError> {
        let mut serials: Vec<u64> = serials.into_iter().collect();
        serials.sort_unstable();
        serials.dedup();
        let count = u32::try_from(serials.len())
            .ok()
            .filter(|_| serials.len() <= REVOKED_MAX)
            .ok_or(ListError::TooLong)?;
        let mut bytes = Vec::with_capacity(FIXED + 8 * serials.len() + SIGNATURE_LEN);
        bytes.push(VERSION);
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.extend_from_slice(&issued.to_be_bytes());
        bytes.extend_from_slice(&count.to_be_bytes());
        serials.iter().for_each(|serial| bytes.extend_from_slice(&serial.to_be_bytes()));
        let signature = authority.sign(&[LABEL, &bytes].concat());
        bytes.extend_from_slice(&signature);
        Ok(RevocationList { number, issued, serials, bytes: bytes.into() })
    }

    /// Reads a list, and verifies that `authority` signed it.
    ///
    /// # Errors
    /// [`ListError`]; of bytes that are not signed, nothing is looked at but the version.
    pub fn from_bytes(bytes: &[u8], authority: &PublicKey) -> Result<RevocationList, ListError> {
        match bytes.first() {
            Some(&VERSION) => {}
            None => return Err(ListError::Malformed),
            Some(version) => return Err(ListError::Version(*version)),
        }
        if bytes.len() > LIST_MAX {
            return Err(ListError::TooLong);
        }
        let signed = signed_fields::verified(bytes, LABEL, authority).ok_or(ListError::Signature)?;
        let (head, rest) = signed.split_at_checked(FIXED).ok_or(ListError::Malformed)?;
        let number = |from: usize| {
            head.get(from..from + 8).and_then(signed_fields::number).ok_or(ListError::Malformed)
        };
        let (serials, more) = rest.as_chunks::<8>();
        let count: [u8; 4] =
            head.get(17..).and_then(|count| count.try_into().ok()).ok_or(ListError::Malformed)?;
        let serials: Vec<u64> = serials.iter().map(|serial| u64::from_be_bytes(*serial)).collect();
        let counted = usize::try_from(u32::from_be_bytes(count)) == Ok(serials.len());
        if !more.is_empty() || !counted || !serials.is_sorted_by(|one, next| one < next) {
            return Err(ListError::Malformed);
        }
        Ok(RevocationList { number: number(1)?, issued: number(9)?, serials, bytes: bytes.into() })
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// When it was made, seconds since 1970-01-01 0:00 UTC.
    #[must_use]
    pub const fn issued(&self) -> u64 {
        self.issued
    }

    /// The serial numbers on it, ascending.
    #[must_use]
    pub fn serials(&self) -> &[u64] {
        &self.serials
    }

    /// Whether the certificate with this number is revoked.
    #[must_use]
    pub fn has(&self, serial: u64) -> bool {
        self.serials.binary_search(&serial).is_ok()
    }

    /// It as bytes, which all who tell of it share: it is up to half a MiB.
    #[must_use]
    pub fn shared(&self) -> Arc<[u8]> {
        Arc::clone(&self.bytes)
    }

    /// It as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}
