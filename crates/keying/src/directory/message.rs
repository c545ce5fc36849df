//! What is asked of a directory and what it answers, over any stream of bytes.
//!
//! ```text
//! message    length u32 | kind u8 | body          length counts kind and body
//! question   1 certificate   name space u8 | name           -> 1 or 2
//!            2 list          number that is known u64        -> 3 or 4
//!            3 watch         0, or 1 with all certificates u8 -> 1, 3 as they come, 4 when all that was there is told
//!                            2 with daily keys too            -> 7 as well
//!            4 put           a certificate                    -> 5 or 6
//!            5 put           a list                           -> 5 or 6
//!            6 put           daily keys of a node             -> 5 or 6
//!            7 daily keys    hash of a node's key             -> 7 or 2
//! answer     1 certificate | 2 none | 3 list | 4 no news | 5 stored | 6 refused, words | 7 daily keys
//! ```
//!
//! Answers come in the order of the questions. After `watch` nothing more is asked.

use core::net::IpAddr;
use std::sync::Arc;

use strait_wire::sessionless::Name;

use super::certificate::CERTIFICATE_MAX;
use super::revocation::LIST_MAX;
use crate::sessionless::DAILY_KEYS_MAX;

/// Bytes of the length in front of a message.
pub const HEAD_LEN: usize = 4;
/// Most bytes of a question behind its length.
pub const QUESTION_MAX: usize = 1 + LIST_MAX;
/// Most bytes of an answer behind its length.
pub const ANSWER_MAX: usize = 1 + LIST_MAX;
/// Most bytes of the words of a refusal.
pub const REFUSAL_MAX: usize = 512;
/// Most bytes of a question that puts nothing.
pub const NAMES_LEN_MAX: usize = 1 + 1 + 16;
/// The kind of the question that nothing follows.
pub const KIND_WATCH: u8 = 3;

/// A message that is not one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a message of a directory")]
pub struct BadMessage;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The certificate of the node with this name: a hash of its key or name, or an address of its networks.
    Find(Name),
    /// The revocation list, if its number is not this.
    List(u64),
    /// The list, and each later one as it comes; the same for certificates, if they are wanted.
    Watch {
        /// Whether certificates are wanted.
        certificates: bool,
    },
    /// The list, certificates and daily keys, and each later one as it comes.
    WatchAll,
    /// The daily keys of the node whose key has this hash.
    FindDailyKeys(Name),
    /// A certificate to be kept.
    PutCertificate(Box<[u8]>),
    /// A list to be kept.
    PutList(Box<[u8]>),
    /// Daily keys to be kept.
    PutDailyKeys(Box<[u8]>),
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A certificate.
    Certificate(Box<[u8]>),
    /// There is none.
    NotFound,
    /// The revocation list.
    List(Arc<[u8]>),
    /// There is no other list; for who watches: all that was there has been told.
    NoNews,
    /// It is kept, or was already.
    Stored,
    /// It is not kept, and why.
    Refused(String),
    /// Daily keys of a node.
    DailyKeys(Box<[u8]>),
}

/// The head of a message with a body of so many bytes.
fn head(kind: u8, body: usize) -> [u8; HEAD_LEN + 1] {
    // All bodies have limits far below 4 GiB.
    let [a, b, c, d] = u32::try_from(1 + body).unwrap_or(u32::MAX).to_be_bytes();
    [a, b, c, d, kind]
}

fn framed(kind: u8, body: &[&[u8]]) -> Vec<u8> {
    let len = body.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity(HEAD_LEN + 1 + len);
    bytes.extend_from_slice(&head(kind, len));
    body.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

impl Question {
    /// The whole message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Question::Find(name) => framed(1, &[&[name.space() as u8], name.bytes()]),
            Question::List(number) => framed(2, &[&number.to_be_bytes()]),
            Question::Watch { certificates } => framed(KIND_WATCH, &[&[u8::from(*certificates)]]),
            Question::WatchAll => framed(KIND_WATCH, &[&[2]]),
            Question::PutCertificate(bytes) => framed(4, &[bytes]),
            Question::PutList(bytes) => framed(5, &[bytes]),
            Question::PutDailyKeys(bytes) => framed(6, &[bytes]),
            Question::FindDailyKeys(name) => framed(7, &[name.bytes()]),
        }
    }

    /// Reads a whole message.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Question, BadMessage> {
        let (head, body) = bytes.split_first_chunk::<HEAD_LEN>().ok_or(BadMessage)?;
        let len = usize::try_from(u32::from_be_bytes(*head)).map_err(|_| BadMessage)?;
        if len == body.len() { Question::from_body(body) } else { Err(BadMessage) }
    }

    /// Reads what is behind the length.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub fn from_body(body: &[u8]) -> Result<Question, BadMessage> {
        let (kind, rest) = body.split_first().ok_or(BadMessage)?;
        match (kind, rest) {
            (1, [space, name @ ..]) => name_of(*space, name).map(Question::Find).ok_or(BadMessage),
            (2, number) => number
                .try_into()
                .map(|number| Question::List(u64::from_be_bytes(number)))
                .map_err(|_| BadMessage),
            (&KIND_WATCH, [all @ 0..=1]) => Ok(Question::Watch { certificates: *all == 1 }),
            (&KIND_WATCH, [2]) => Ok(Question::WatchAll),
            (4, bytes) if !bytes.is_empty() && bytes.len() <= CERTIFICATE_MAX => {
                Ok(Question::PutCertificate(bytes.into()))
            }
            (5, bytes) if !bytes.is_empty() && bytes.len() <= LIST_MAX => Ok(Question::PutList(bytes.into())),
            (6, bytes) if !bytes.is_empty() && bytes.len() <= DAILY_KEYS_MAX => {
                Ok(Question::PutDailyKeys(bytes.into()))
            }
            (7, name) => name_of(8, name).map(Question::FindDailyKeys).ok_or(BadMessage),
            _ => Err(BadMessage),
        }
    }

    /// Most bytes that a question of this kind may have, the kind included: known before the rest is read.
    #[must_use]
    pub const fn most(kind: u8) -> usize {
        match kind {
            4 => 1 + CERTIFICATE_MAX,
            5 => 1 + LIST_MAX,
            6 => 1 + DAILY_KEYS_MAX,
            _ => NAMES_LEN_MAX,
        }
    }
}

impl Answer {
    /// The whole message.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (head, body) = self.parts();
        [&head, body].concat()
    }

    /// The message as its head and its body, which is not copied.
    #[must_use]
    pub fn parts(&self) -> ([u8; HEAD_LEN + 1], &[u8]) {
        let (kind, body): (u8, &[u8]) = match self {
            Answer::Certificate(bytes) => (1, bytes),
            Answer::NotFound => (2, &[]),
            Answer::List(bytes) => (3, bytes),
            Answer::NoNews => (4, &[]),
            Answer::Stored => (5, &[]),
            Answer::Refused(words) => {
                let end = (0..=words.len().min(REFUSAL_MAX)).rev().find(|end| words.is_char_boundary(*end));
                (6, words.get(..end.unwrap_or(0)).unwrap_or_default().as_bytes())
            }
            Answer::DailyKeys(bytes) => (7, bytes),
        };
        (head(kind, body.len()), body)
    }

    /// Reads what is behind the length.
    ///
    /// # Errors
    /// [`BadMessage`].
    pub fn from_body(body: &[u8]) -> Result<Answer, BadMessage> {
        let (kind, rest) = body.split_first().ok_or(BadMessage)?;
        match kind {
            1 if !rest.is_empty() && rest.len() <= CERTIFICATE_MAX => Ok(Answer::Certificate(rest.into())),
            2 if rest.is_empty() => Ok(Answer::NotFound),
            3 if !rest.is_empty() && rest.len() <= LIST_MAX => Ok(Answer::List(rest.into())),
            4 if rest.is_empty() => Ok(Answer::NoNews),
            5 if rest.is_empty() => Ok(Answer::Stored),
            6 if rest.len() <= REFUSAL_MAX => {
                let words = core::str::from_utf8(rest).map_err(|_| BadMessage)?;
                Ok(Answer::Refused(words.to_owned()))
            }
            7 if !rest.is_empty() && rest.len() <= DAILY_KEYS_MAX => Ok(Answer::DailyKeys(rest.into())),
            _ => Err(BadMessage),
        }
    }

    /// Most bytes that an answer of this kind may have, the kind included: known before the rest is read.
    #[must_use]
    pub const fn most(kind: u8) -> usize {
        match kind {
            1 => 1 + CERTIFICATE_MAX,
            3 => 1 + LIST_MAX,
            7 => 1 + DAILY_KEYS_MAX,
            _ => 1 + REFUSAL_MAX,
        }
    }
}

/// The name in a name space; no name is none that can be asked for.
fn name_of(space: u8, name: &[u8]) -> Option<Name> {
    match space {
        1 => <[u8; 4]>::try_from(name).ok().map(|octets| Name::address(IpAddr::from(octets))),
        3 => <[u8; 16]>::try_from(name).ok().map(|octets| Name::address(IpAddr::from(octets))),
        4 => name.try_into().ok().map(Name::name_hash),
        8 => name.try_into().ok().map(Name::key_hash),
        _ => None,
    }
}
