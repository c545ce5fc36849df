//! The table, ours beside the paper's, and what is behind it.

use std::iter;

use super::daemons::{DaemonPings, TunnelPings};
use super::tiers::Tier;
use super::{DURABLE, Latency, PAPERS, SETTINGS, TODAYS};
use crate::enskip::printed::{LATENCY, LATENCY_DISK, LATENCY_NONE, LATENCY_PRIMARY, LATENCY_SECONDARY};
use crate::measure::RunValues;
use crate::report::{Comparison, Exhibit, FigureUnit, LabTable, computed};

/// Microseconds a millisecond.
const MICROS: f64 = 1000.0;

/// What the paper prints for a tier, in microseconds.
pub(super) fn printed(tier: Tier) -> Option<f64> {
    let place = match tier {
        Tier::Plain => LATENCY_NONE,
        Tier::Primary => LATENCY_PRIMARY,
        Tier::Secondary => LATENCY_SECONDARY,
        Tier::Disk => LATENCY_DISK,
        // "Varies" is no figure.
        Tier::Header | Tier::NewKey | Tier::DiskRead | Tier::NoCache => return None,
    };
    Some(LATENCY[place].1 * MICROS)
}

impl Latency {
    /// All of them.
    pub(super) fn tables(&self) -> Vec<LabTable> {
        let mut all =
            vec![self.round_trips(), self.over_plain(), self.waits(), self.uses(), self.part_table()];
        if let Ok(pings) = &self.daemons {
            all.extend([pings.pings(), pings.files()]);
        }
        all
    }

    /// The paper's table; its figures are of 3DES and MD5 and stand beside ours of those.
    fn round_trips(&self) -> LabTable {
        let mut table = table(
            "round trip of a ping by what is cached, loopback; the paper's 486DX2-66",
            FigureUnit::Microseconds,
            names(),
        );
        for tier in Tier::ALL {
            let cell = |settings: usize| {
                let paper = printed(tier).filter(|_| settings == PAPERS);
                (self.times(settings, tier).took.clone(), paper)
            };
            table.row(tier.name(), (0..DURABLE).map(cell));
        }
        table
    }

    /// The same as so many times a ping without ENskip, so that fast and slow machines can be compared.
    fn over_plain(&self) -> LabTable {
        let mut table =
            table("the same over the round trip without encryption", FigureUnit::OverPlain, names());
        for tier in Tier::ALL {
            let cell = |settings: usize| {
                let time = |tier| &self.times(settings, tier).took;
                let paper = printed(tier).zip(printed(Tier::Plain)).map(|(time, plain)| time / plain);
                (time(tier).over(time(Tier::Plain)), paper.filter(|_| settings == PAPERS))
            };
            table.row(tier.name(), (0..DURABLE).map(cell));
        }
        table
    }

    /// Where the time goes, with today's algorithms.
    fn waits(&self) -> LabTable {
        let columns = ["all", "marks on disk", "cards on disk", "directory", "the rest"];
        let subject = "where the time goes, aes-256-gcm, with marks on disk as they are to be";
        let mut table = table(subject, FigureUnit::Microseconds, columns);
        table.exhibit = Exhibit::Words;
        for tier in Tier::ALL {
            let times = self.times(DURABLE, tier);
            let [marks, cards, directory] = times.waited.clone();
            let rest = times.took.minus(&marks).minus(&cards).minus(&directory);
            let cells = [times.took.clone(), marks, cards, directory, rest];
            table.row(tier.name(), cells.map(|ours| (ours, None)));
        }
        table
    }

    /// What one round trip asks of the caches of both ends.
    fn uses(&self) -> LabTable {
        let columns = [
            "known headers",
            "new headers",
            "Kijn hits",
            "Kijn misses",
            "Kij hits",
            "Kij misses",
            "cards read",
            "cards fetched",
            "marks written",
        ];
        let mut table = table("what both ends ask in one round trip", FigureUnit::Count, columns);
        table.exhibit = Exhibit::Words;
        for tier in Tier::ALL {
            let uses = self.times(TODAYS, tier).uses;
            let counts = [
                uses.packet_keys.0,
                uses.packet_keys.1,
                uses.epoch_keys.0,
                uses.epoch_keys.1,
                uses.secrets.0,
                uses.secrets.1,
                uses.asked.cards,
                uses.asked.fetched,
                uses.asked.marks,
            ];
            table.row(tier.name(), counts.map(|count| (computed(count as f64), None)));
        }
        table
    }

    fn part_table(&self) -> LabTable {
        let mut table = table("what steps take by themselves", FigureUnit::Microseconds, ["time"]);
        table.exhibit = Exhibit::Words;
        for part in &self.parts {
            table.row(part.name.as_str(), [(part.took.clone(), None)]);
        }
        table
    }
}

impl DaemonPings {
    /// Each kind of tunnel that there is.
    fn tunnels(&self) -> impl Iterator<Item = (&'static str, &TunnelPings)> {
        let sessionless = self.sessionless.iter().map(|tunnel| ("keys without a session", tunnel));
        iter::once(("a session", &self.session)).chain(sessionless)
    }

    fn pings(&self) -> LabTable {
        let subject = "pings between two hosts, by daemons with their default suite";
        let columns = ["first after both were started", "those after it"];
        let mut table = table(subject, FigureUnit::Microseconds, columns);
        table.exhibit = Exhibit::Words;
        table.row("the link, no tunnel", [(RunValues::default(), None), (self.link.clone(), None)]);
        for (name, tunnel) in self.tunnels() {
            table.row(name, [(tunnel.first.clone(), None), (tunnel.warm.clone(), None)]);
        }
        table
    }

    fn files(&self) -> LabTable {
        let subject = "the file of random bytes through these tunnels";
        let mut table = table(subject, FigureUnit::KilobytesPerSecond, ["wall"]);
        table.exhibit = Exhibit::Words;
        for (name, tunnel) in self.tunnels() {
            table.row(name, [(tunnel.file.clone(), None)]);
        }
        table
    }
}

/// Columns beside the paper's.
fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS[..DURABLE].iter().map(|(name, _)| *name)
}

/// A table of latencies without rows.
fn table(subject: &str, unit: FigureUnit, columns: impl IntoIterator<Item = impl Into<String>>) -> LabTable {
    LabTable::new(Exhibit::OnlyTable, subject, unit, Comparison::Quotient, columns)
}
