//! What is varied, and how long each is measured.

use std::fmt;
use std::time::Duration;

use strait_compress::Method;
use strait_compress::calibrate::CANDIDATES;
use strait_scheduler::Rate;

use super::content::Content;
use super::run::CompressionSetting;
use crate::steps::Effort;

/// Links in Mbit/s; nothing is unshaped.
const LINKS: [Option<f64>; 6] = [Some(1.5), Some(10.0), Some(100.0), Some(300.0), Some(1000.0), None];
/// The tunnel's own cap on blocks.
pub(super) const BLOCK: u32 = 65_536;
/// Caps on blocks: that one, and what holds few packets.
const BLOCKS: [u32; 2] = [BLOCK, 4_096];
const QUICK_METHODS: [Method; 2] = [Method::LZ4, Method::ZSTD];
const QUICK_LINKS: [Option<f64>; 3] = [Some(10.0), Some(300.0), None];
/// Slower than this a link is measured for longer, and once: a block takes a good part of a second, and nothing but
/// the link decides.
const SLOW: u64 = 50_000_000;

/// What may disturb a run is a compiler or two, which pause now and then.
const ATTEMPTS: usize = 4;

/// What is varied.
#[derive(Clone, Debug)]
pub struct VerifyGrid {
    /// Rates of the link; nothing is as fast as memory.
    pub links: Vec<Option<Rate>>,
    /// Most bytes of a block.
    pub blocks: Vec<u32>,
    /// What is compressed with, beside the tunnel's own choice and nothing.
    pub methods: Vec<Method>,
    /// What is sent.
    pub contents: Vec<Content>,
    effort: Effort,
}

impl VerifyGrid {
    /// All of it, with every method that the tunnel chooses among; or a corner.
    #[must_use]
    pub fn new(effort: Effort, contents: Vec<Content>) -> VerifyGrid {
        let (links, methods, blocks): (&[Option<f64>], &[Method], &[u32]) = match effort {
            Effort::Full => (&LINKS, &CANDIDATES, &BLOCKS),
            Effort::Quick => (&QUICK_LINKS, &QUICK_METHODS, &BLOCKS[..1]),
        };
        let rate = |megabits: &Option<f64>| megabits.and_then(|it| Rate::from_bits((it * 1e6) as u64));
        VerifyGrid {
            links: links.iter().map(rate).collect(),
            blocks: blocks.to_vec(),
            methods: methods.to_vec(),
            contents,
            effort,
        }
    }

    pub(super) const fn effort(&self) -> Effort {
        self.effort
    }

    /// Every link with every cap.
    pub(super) fn places(&self) -> Vec<GridPlace> {
        let at = |block: u32| self.links.iter().map(move |link| GridPlace::new(*link, block, self.effort));
        self.blocks.iter().flat_map(|block| at(*block)).collect()
    }

    /// Streams in all.
    pub(super) fn runs(&self) -> usize {
        let ways = CompressionSetting::all(self).count() * self.contents.len();
        self.places().iter().map(|place| place.rounds * ways).sum()
    }
}

/// A link and a cap, and how it is measured there.
#[derive(Clone, Copy, Debug)]
pub(super) struct GridPlace {
    pub(super) link: Option<Rate>,
    pub(super) block: u32,
    pub(super) rounds: usize,
    /// How often at most a run is made that others disturb.
    pub(super) attempts: usize,
    /// Until queues are full, slow start is over and the choice is made.
    pub(super) warm_up: Duration,
    pub(super) window: Duration,
}

impl GridPlace {
    pub(super) fn new(link: Option<Rate>, block: u32, effort: Effort) -> GridPlace {
        let slow = is_below(link, SLOW);
        let very_slow = is_below(link, SLOW / 10);
        let (warm_up, window) = match (effort, very_slow, slow) {
            (Effort::Quick, ..) => (700, 1_000),
            (Effort::Full, true, _) => (3_000, 10_000),
            (Effort::Full, _, true) => (2_000, 4_000),
            (Effort::Full, ..) => (1_500, 2_000),
        };
        let (rounds, attempts) = if slow || effort == Effort::Quick { (1, 1) } else { (3, ATTEMPTS) };
        let [warm_up, window] = [warm_up, window].map(Duration::from_millis);
        GridPlace { link, block, rounds, attempts, warm_up, window }
    }

    /// Until what a stream left in queues is gone: they hold a second of a slow link, and little time of a fast one.
    pub(super) const fn drain(&self) -> Duration {
        if self.is_slow() { Duration::from_secs(1) } else { Duration::from_millis(200) }
    }

    /// Whether nothing but the link decides.
    pub(super) const fn is_slow(&self) -> bool {
        is_below(self.link, SLOW)
    }
}

const fn is_below(link: Option<Rate>, bits: u64) -> bool {
    match link {
        Some(link) => link.bits() < bits,
        None => false,
    }
}

impl fmt::Display for GridPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.link {
            Some(rate) => write!(f, "{rate}, {} bytes", self.block),
            None => write!(f, "unshaped, {} bytes", self.block),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_and_quick_grids_have_their_runs() {
        let grid = VerifyGrid::new(Effort::Full, Content::generated());
        assert_eq!((grid.methods.len(), grid.links.len(), grid.places().len()), (9, 6, 12));
        // Eleven ways over three contents; four links are gone over three times.
        assert_eq!(grid.runs(), 2 * (2 + 4 * 3) * 33);
        let corner = VerifyGrid::new(Effort::Quick, Content::generated());
        assert_eq!((corner.places().len(), corner.runs()), (3, 3 * 12));
        assert!(
            corner.places().iter().all(|place| place.rounds == 1 && place.window < Duration::from_secs(2))
        );
    }
}
