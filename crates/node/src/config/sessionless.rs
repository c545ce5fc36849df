//! `keying = "sessionless"` in `[[peer]]`: keys that need no session.

use std::time::Duration;

use strait_ipsec::ReturnPath;
use strait_keying::PublicKey;
use strait_keying::sessionless::{EpochLength, KeyCard};

use super::problem::Problem;
use super::reader::Section;
use super::sections::span;

/// The keys that only such a peer has, after the one that says what it is.
pub(super) const KEYS: [&str; 5] = ["keying", "one_way", "epoch", "pin", "card"];

/// Keys that need no session, with one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionlessSection {
    /// Whether anything comes back from it.
    pub path: ReturnPath,
    /// How long an epoch is.
    pub epoch: EpochLength,
    /// Whether everything of it stays in the caches.
    pub pin: bool,
    /// What it says of itself.
    pub card: Option<KeyCard>,
}

/// What the section of the peer with the key `public` says.
pub(super) fn read(section: &Section<'_>, public: PublicKey) -> Option<Box<SessionlessSection>> {
    if !section.choice("keying", &["session", "sessionless"], &[false, true]).unwrap_or(false) {
        for key in KEYS.into_iter().skip(1) {
            if let Some(value) = section.value(key) {
                section.note(value.span(), Problem::NeedsSessionless { key });
            }
        }
        return None;
    }
    let limits =
        [EpochLength::SHORTEST, EpochLength::LONGEST].map(|seconds| Duration::from_secs(seconds.into()));
    let length = span(section, "epoch", limits[0], limits[1], ["1m", "30d"]);
    let seconds = length.and_then(|length| u32::try_from(length.as_secs()).ok());
    let card = section.parsed("card", "a card in quotes, as `strait keys card` prints it", |text| {
        text.parse::<KeyCard>().map_err(Problem::Card)
    });
    if let Some(card) = card.as_ref().filter(|card| card.value.key != public) {
        section.note(card.span.clone(), Problem::CardOfAnother { key: card.value.key });
    }
    Some(Box::new(SessionlessSection {
        path: match section.boolean("one_way") {
            Some(true) => ReturnPath::OneWay,
            Some(false) | None => ReturnPath::Answers,
        },
        epoch: seconds.and_then(EpochLength::from_seconds).unwrap_or_default(),
        pin: section.boolean("pin").unwrap_or(false),
        card: card.map(|card| card.value),
    }))
}
