//! Why a sessionless datagram was not taken; each reason has a counter.

/// Why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Refusal {
    /// It is no header that this version reads, or nothing follows it.
    Malformed,
    /// Its check is not keyed by this node's public key.
    BadCheck,
    /// Its sender is not known.
    UnknownName,
    /// Too many names are looked up at present, or too many datagrams wait for this one.
    WaitingFull,
    /// It is of an epoch that is too far off.
    EpochFarOff,
    /// Its number is ahead of its epoch.
    NumberAhead,
    /// The card of its sender is not valid yet, or not any more.
    CardNotValid,
    /// An algorithm is not known, or not allowed.
    Algorithm,
    /// The secret of a key packet is required and not in it.
    NotHybrid,
    /// It does without daily keys, which are required, or has those of a day that one end does not know.
    NoDailyKey,
    /// Too many secrets were to be computed at once.
    Busy,
    /// Its packet key was not wrapped by its sender, or the tag of its key packet is wrong.
    Forged,
    /// Its number is at or below the mark.
    BelowMark,
}

impl Refusal {
    /// Every reason.
    pub const ALL: [Refusal; 13] = [
        Refusal::Malformed,
        Refusal::BadCheck,
        Refusal::UnknownName,
        Refusal::WaitingFull,
        Refusal::EpochFarOff,
        Refusal::NumberAhead,
        Refusal::CardNotValid,
        Refusal::Algorithm,
        Refusal::NotHybrid,
        Refusal::NoDailyKey,
        Refusal::Busy,
        Refusal::Forged,
        Refusal::BelowMark,
    ];

    /// The name of its counter.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::Malformed => "malformed",
            Refusal::BadCheck => "bad_check",
            Refusal::UnknownName => "unknown_name",
            Refusal::WaitingFull => "waiting_full",
            Refusal::EpochFarOff => "epoch_far_off",
            Refusal::NumberAhead => "number_ahead",
            Refusal::CardNotValid => "card_not_valid",
            Refusal::Algorithm => "algorithm",
            Refusal::NotHybrid => "not_hybrid",
            Refusal::NoDailyKey => "no_daily_key",
            Refusal::Busy => "busy",
            Refusal::Forged => "forged",
            Refusal::BelowMark => "below_mark",
        }
    }
}

/// Datagrams refused, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    pub(super) fn count(&mut self, refusal: Refusal) {
        self.add(refusal, 1);
    }

    /// Adds datagrams that were refused elsewhere.
    pub(crate) fn add(&mut self, refusal: Refusal, datagrams: u64) {
        if let Some(count) = self.0.get_mut(refusal as usize) {
            *count += datagrams;
        }
    }

    /// Both together.
    #[must_use]
    pub(crate) fn with(mut self, other: Refusals) -> Refusals {
        Refusal::ALL.into_iter().for_each(|refusal| self.add(refusal, other.of(refusal)));
        self
    }

    /// How many were refused for this reason.
    #[must_use]
    pub fn of(&self, refusal: Refusal) -> u64 {
        self.0.get(refusal as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_counter_and_a_name() {
        let mut refusals = Refusals::default();
        for (place, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, place);
            refusals.count(refusal);
            assert_eq!(refusals.of(refusal), 1, "{}", refusal.name());
        }
    }
}
