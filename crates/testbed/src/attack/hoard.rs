//! A sender that puts what costs a broker's store most for its bytes.

use std::io::{Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use strait_keying::PublicKey;
use strait_transfer::TransferId;
use strait_transfer::broker::client::{BrokerClient, BrokerError};
use strait_transfer::broker::message::{BrokerAnswer, BrokerRequest, FaultKind, LetterKind, MAX_DATA};

/// Seconds for which an object is to be kept.
const KEPT: i64 = 3600;
/// Numbers of objects stay below this.
const NUMBERS: u64 = 1 << 48;

/// A kind of object that is put again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hoard {
    /// Objects without contents, to all receivers: a name and a file for each.
    Letters,
    /// The same to one receiver.
    LettersToOne,
    /// Contents of one byte, with a folder and a file.
    Small,
    /// Uploads of one byte that never end.
    SmallUploads,
    /// Larger ones that never end.
    LargeUploads,
}

impl Hoard {
    /// All of them.
    pub const ALL: [Hoard; 5] =
        [Hoard::Letters, Hoard::LettersToOne, Hoard::Small, Hoard::SmallUploads, Hoard::LargeUploads];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Hoard::Letters => "letters",
            Hoard::LettersToOne => "letters to one",
            Hoard::Small => "small contents",
            Hoard::SmallUploads => "small uploads without an end",
            Hoard::LargeUploads => "large uploads without an end",
        }
    }

    /// Puts as many as are taken, with numbers from one on; the number that was not taken, and why not.
    ///
    /// # Errors
    /// [`BrokerError`] but [`BrokerError::Refused`].
    pub fn flood<R: Read, W: Write>(
        self,
        client: &mut BrokerClient<R, W>,
        from: u64,
        to: &[PublicKey],
    ) -> Result<(u64, FaultKind), BrokerError> {
        for number in from..NUMBERS {
            if let Some(fault) = self.put(client, number, to)? {
                return Ok((number, fault));
            }
        }
        Err(BrokerError::Protocol("it takes whatever comes"))
    }

    /// Puts the one with this number, to keys in ascending order; why it was not taken, if it was not.
    ///
    /// # Errors
    /// As [`Hoard::flood`].
    pub fn put<R: Read, W: Write>(
        self,
        client: &mut BrokerClient<R, W>,
        number: u64,
        to: &[PublicKey],
    ) -> Result<Option<FaultKind>, BrokerError> {
        let (to, contents, ends) = match self {
            Hoard::Letters => (to, 0, true),
            Hoard::LettersToOne => (to.get(..1).unwrap_or_default(), 0, true),
            Hoard::Small => (to.get(..1).unwrap_or_default(), 1, true),
            Hoard::SmallUploads => (to.get(..1).unwrap_or_default(), 1, false),
            Hoard::LargeUploads => (to.get(..1).unwrap_or_default(), 300_000, false),
        };
        let made = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let made = i64::try_from(made).unwrap_or(i64::MAX - KEPT);
        let (kind, receivers) = (LetterKind::Transfer, to.to_vec());
        client.say(&BrokerRequest::Put { id: id(number), kind, made, expires: made + KEPT, receivers })?;
        match client.next_answer()? {
            BrokerAnswer::Held { .. } => {}
            other => return refusal(&other),
        }
        let bytes = vec![1; contents];
        for (chunk, at) in bytes.chunks(MAX_DATA).zip((0..).step_by(MAX_DATA)) {
            client.say(&BrokerRequest::Data { at, bytes: chunk.to_vec() })?;
        }
        if ends {
            client.say(&BrokerRequest::Manifest { bytes: vec![1] })?;
            client.say(&BrokerRequest::Commit { contents: contents as u64 })?;
        } else {
            // The answer says that the bytes before it were taken.
            client.say(&BrokerRequest::Abandon { id: id(NUMBERS) })?;
        }
        loop {
            match client.next_answer()? {
                BrokerAnswer::Held { .. } => {}
                BrokerAnswer::Stored { .. } | BrokerAnswer::Removed { .. } => return Ok(None),
                other => return refusal(&other),
            }
        }
    }
}

fn refusal(answer: &BrokerAnswer) -> Result<Option<FaultKind>, BrokerError> {
    match answer {
        BrokerAnswer::Refused { fault, .. } => Ok(Some(fault.kind)),
        _ => Err(BrokerError::Protocol("an answer is none to what was put")),
    }
}

fn id(number: u64) -> TransferId {
    let mut bytes = [7; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    TransferId::from_bytes(bytes)
}
