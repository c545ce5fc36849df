//! Tiers, and what is noted of a round trip in one.

use std::time::Duration;

use super::end::{Asked, PingEnd, Waited};

/// What both ends have of each other before a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    /// Neither end knows of ENskip: the same bytes as they are.
    Plain,
    /// Packet keys, and their SPIs are bound.
    Primary,
    /// Packet keys, and their headers are still in front of packets, as in all of ENskip's.
    Header,
    /// Card, Kij and Kijn, and no packet key: the last one lived for its minute.
    NewKey,
    /// Card and Kij: it is another epoch.
    Secondary,
    /// The card on disk, whose pages are in memory: both were restarted.
    Disk,
    /// The card on disk alone.
    DiskRead,
    /// Nothing: the directory has the card.
    NoCache,
}

impl Tier {
    /// In the order of tables.
    pub(super) const ALL: [Tier; 8] = [
        Tier::Plain,
        Tier::Primary,
        Tier::Header,
        Tier::NewKey,
        Tier::Secondary,
        Tier::Disk,
        Tier::DiskRead,
        Tier::NoCache,
    ];

    /// What a row is called.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Tier::Plain => "no encryption",
            Tier::Primary => "primary cache",
            Tier::Header => "primary, header in front",
            Tier::NewKey => "primary, new packet key",
            Tier::Secondary => "secondary cache",
            Tier::Disk => "certificate on disk",
            Tier::DiskRead => "on disk, pages forgotten",
            Tier::NoCache => "no cache",
        }
    }
}

/// A round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RoundTrip {
    /// By the clock on the wall.
    pub(super) took: Duration,
    /// What both ends waited for in it.
    pub(super) waited: Waited,
}

impl RoundTrip {}

/// What both ends asked of caches and disks in a round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheUse {
    /// Cards, marks and packet keys.
    pub(super) asked: Asked,
    /// Headers of packet keys in use, and others.
    pub(super) packet_keys: (u64, u64),
    /// Kijn that were there, and others.
    pub(super) epoch_keys: (u64, u64),
    /// Kij, likewise.
    pub(super) secrets: (u64, u64),
}

impl CacheUse {
    /// Of both ends since they were started.
    pub(super) fn of(ends: &[PingEnd; 2]) -> CacheUse {
        let mut all = CacheUse::default();
        for end in ends {
            let counts = end.counts();
            let pairs = [
                (&mut all.packet_keys, counts.packet_keys),
                (&mut all.epoch_keys, counts.epoch_keys),
                (&mut all.secrets, counts.secrets),
            ];
            for (sum, more) in pairs {
                *sum = (sum.0 + more.hits, sum.1 + more.misses);
            }
            all.asked.cards += end.asked.cards;
            all.asked.fetched += end.asked.fetched;
            all.asked.marks += end.asked.marks;
            all.asked.keys += end.asked.keys;
        }
        all
    }

    /// What was added since `before`.
    pub(super) fn since(self, before: CacheUse) -> CacheUse {
        let less = |a: (u64, u64), b: (u64, u64)| (a.0 - b.0, a.1 - b.1);
        CacheUse {
            asked: Asked {
                cards: self.asked.cards - before.asked.cards,
                fetched: self.asked.fetched - before.asked.fetched,
                marks: self.asked.marks - before.asked.marks,
                keys: self.asked.keys - before.asked.keys,
            },
            packet_keys: less(self.packet_keys, before.packet_keys),
            epoch_keys: less(self.epoch_keys, before.epoch_keys),
            secrets: less(self.secrets, before.secrets),
        }
    }
}
