//! Encryption between nodes that never shake hands, after SKIP (draft-ietf-ipsec-skip-06).
//!
//! Two nodes whose public keys are known to each other share a secret, Kij, without a message. For every epoch another key follows from
//! it, Kijn, by the time alone. The sender chooses packet keys, Kp, which serve for a minute at most; each travels, wrapped under Kijn,
//! in a header in front of its packets, until the receiver has acknowledged it. So the first packet is understood without a round trip,
//! and nothing is lost when either end restarts. There is no forward secrecy, unless both publish keys for each day: who steals a node's
//! key can read all that was recorded.
//!
//! ```text
//! out   Sender::begin -> OutboundKey, its header in front of ESP while the peer needs it
//! in    Receiver::look -> Verdict: known, new with keys to try, waiting, or refused
//!       ESP opens -> Receiver::bind, Receiver::received -> deliver, now or once the mark is on disk
//! ```
//!
//! Parts: `clock` has the time of day and epochs; `algorithms` their numbers; `shared` Kij and Kijn; `daily` daily keys; `packet_key` Kp; `node_keys`
//! names, ML-KEM keys and the check before any public-key operation; `marks` how numbers stay unique over restarts, and
//! `mark_file` how they stand on disk; `sender` and `receiver` the state of both ends; `screen` what comes before that of the receiver;
//! `cache` the bounded caches; `card` what a node says of itself, signed.

mod algorithms;
mod cache;
mod card;
mod clock;
mod daily;
mod mark_file;
mod marks;
mod node_keys;
mod packet_key;
mod receiver;
mod screen;
mod sender;
mod shared;

pub use strait_ipsec::{RECEIVE_SLACK, ReturnPath};

pub use algorithms::{Compression, KijAlgorithm, PacketAlgorithms, Protection, UnknownAlgorithm};
pub use cache::{Cache, CacheCounts};
pub use card::{CARD_TEXT_MAX, CardError, CardName, KeyCard};
pub use clock::{EpochLength, EpochOff, Now, WallTime};
pub use daily::{
    BadDailyKeys, DAILY_FILE_LEN, DAILY_KEY_LEN, DAILY_KEYS_MAX, DAYS_MAX, DailyKeys, DailyPolicy, DailyRing,
    DailySecret, DailySlotWrite, Day, OwnDailyKeys,
};
pub use mark_file::{MARK_FILE_MAX, MARKS_MAX, MarkFileError, MarkJournal, MarkTable, MarkWrite};
pub use marks::{CannotSend, Delivery, SEND_SLACK, SendMark};
pub use node_keys::{
    BadKemKey, CheckKey, KEM_PUBLIC_LEN, KEM_SECRET_LEN, KemKey, KemPublic, NodeKeys, key_name, text_name,
};
pub use packet_key::{PACKET_KEY_LEN, PacketKey, PacketKeyLimits};
pub use receiver::{
    BoundKey, Candidate, KnownSender, Received, Receiver, ReceiverCounts, ReceiverEvent, ReceiverSettings,
    Refusal, Refusals, UnknownKey, Verdict, WaitingDatagram,
};
pub use screen::HeaderScreen;
pub use sender::{Acknowledged, OutboundKey, Sender, SenderSettings};
pub use shared::{Direction, EpochSecret, Kij, Kijn};

#[cfg(test)]
mod tests;
