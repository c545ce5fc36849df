//! The algorithms of Tables 1 and 2, of any kind.

use strait_clock::Random;
use strait_crypto::{Cipher, Integrity, Suite};
use strait_testbed::sample;

use super::megabits;
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};
use crate::rate;

/// Ours for the rows of [`TABLE1`](super::printed::TABLE1).
pub(super) const PAPERS: [Subject; 4] = [
    Subject::Integrity(Integrity::HmacMd5_96),
    Subject::Integrity(Integrity::HmacSha1_96),
    Subject::Cipher(Cipher::Rc5R16Cbc),
    Subject::Cipher(Cipher::TripleDesCbc),
];

/// An algorithm of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// Encrypts and authenticates.
    Suite(Suite),
    /// Encrypts.
    Cipher(Cipher),
    /// Authenticates.
    Integrity(Integrity),
}

impl Subject {
    /// Every algorithm that does something.
    pub(super) fn all() -> impl Iterator<Item = Subject> {
        let ciphers = Cipher::ALL.into_iter().filter(|cipher| *cipher != Cipher::Null);
        Suite::ALL
            .map(Subject::Suite)
            .into_iter()
            .chain(ciphers.map(Subject::Cipher))
            .chain(Integrity::ALL.map(Subject::Integrity))
    }

    /// As it is called everywhere.
    pub(super) fn name(self) -> &'static str {
        match self {
            Subject::Suite(it) => it.name(),
            Subject::Cipher(it) => it.name(),
            Subject::Integrity(it) => it.name(),
        }
    }

    /// Whether it is kept for such measurements only.
    pub(super) fn is_legacy(self) -> bool {
        match self {
            Subject::Suite(_) => false,
            Subject::Cipher(it) => it.is_legacy(),
            Subject::Integrity(it) => it.is_legacy(),
        }
    }

    /// Its row in Table 1.
    pub(super) fn printed(self) -> Option<usize> {
        PAPERS.iter().position(|it| *it == self)
    }

    /// What it does at the sender and, where that is something else, at the receiver.
    pub(super) const fn directions(self) -> &'static [&'static str] {
        match self {
            Subject::Suite(_) => &["seal", "open"],
            Subject::Cipher(_) => &["encrypt", "decrypt"],
            Subject::Integrity(_) => &["sign"],
        }
    }

    /// Mbit/s at the sender and at the receiver, for this text.
    pub(super) fn rates(self, stopwatch: RepeatTimer, text: &[u8]) -> Result<[RunValues; 2], Error> {
        let nanos = match self {
            Subject::Suite(suite) => rate::aead(stopwatch, suite, text)?,
            Subject::Cipher(cipher) => rate::cipher(stopwatch, cipher, text)?,
            Subject::Integrity(integrity) => {
                let sign = rate::integrity(stopwatch, integrity, text)?;
                [sign.clone(), sign]
            }
        };
        Ok(nanos.map(|sample| sample.map(megabits)))
    }
}

/// Random bytes, always the same.
pub(super) fn text(len: usize) -> Vec<u8> {
    let mut random = Random::new(sample::DEFAULT_SEED);
    std::iter::repeat_with(|| random.next_u64().to_le_bytes()).flatten().take(len).collect()
}
