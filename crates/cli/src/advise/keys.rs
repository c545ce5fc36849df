//! Caches of keys in a report, as sentences and tables; without layout.

use strait_advise::report::{KeyCacheAdvice, KeyTier};

use super::amounts::{dash, time};
use crate::table::TextTable;
use crate::units::counted;

/// The words before the keys of the configuration.
pub(super) const PASTE: &str =
    "For a hub without sessions that looks certificates up, these keys belong in the configuration:";

/// Says in a sentence or two which sizes are enough.
pub(super) fn verdict(advice: &KeyCacheAdvice) -> String {
    let peers = counted(advice.peers as u64, "peer");
    let enough = |tier: &&KeyTier| tier.cache == "peers";
    let Some(KeyTier { today, enough, misses, seconds, .. }) = advice.tiers.iter().find(enough) else {
        return String::new();
    };
    let (today, enough) = (today.unwrap_or(0), enough.unwrap_or(0));
    if advice.holds_today() {
        return match enough < advice.peers {
            true => format!(
                "Caches of keys: the default sizes hold all {peers} of a hub; room for {enough}{} would be enough.",
                pinned(advice)
            ),
            false => format!("Caches of keys: the default sizes hold all {peers} of a hub."),
        };
    }
    format!(
        "Caches of keys: a hub with {peers} has room for {today}, and makes keys anew {}, which takes {}. With room for \
         {enough}{} that takes {}; 1 % of the time of encryption is {}.",
        counted(misses.today, "time"),
        time(seconds.today),
        pinned(advice),
        time(seconds.enough),
        time(advice.allowed_seconds)
    )
}

fn pinned(advice: &KeyCacheAdvice) -> String {
    match advice.pins.len() {
        0 => String::new(),
        pins => format!(", {pins} of them pinned,"),
    }
}

/// The tiers, with sizes, misses and what these take.
pub(super) fn tiers(advice: &KeyCacheAdvice) -> TextTable {
    let mut table =
        TextTable::new(["cache of keys", "today", "enough", "a miss", "misses", "then", "cost", "then"]);
    for tier in &advice.tiers {
        let entries = |entries: Option<usize>| entries.map_or_else(dash, |entries| entries.to_string());
        let each = format!("{:.2} ms", tier.miss_seconds * 1e3);
        let [today, enough] = [tier.misses.today, tier.misses.enough].map(|misses| misses.to_string());
        let [cost, then] =
            [tier.seconds.today, tier.seconds.enough].map(|seconds| format!("{:.1} ms", seconds * 1e3));
        table.row([
            tier.cache.to_owned(),
            entries(tier.today),
            entries(tier.enough),
            each,
            today,
            enough,
            cost,
            then,
        ]);
    }
    table
}

/// Says what the figures of the tiers are.
pub(super) fn notes(advice: &KeyCacheAdvice) -> Vec<String> {
    let mut notes = vec![
        "`peers` have packet keys, Kijn and Kij; `certificates` are on disk, and others come from a directory one round trip \
         away. The first miss of each peer is not counted: only a pin spares it."
            .to_owned(),
    ];
    if !advice.pins.is_empty() {
        let pins = advice
            .pins
            .iter()
            .map(|pin| format!("{} ({})", pin.address, counted(pin.returns as u64, "return")));
        notes
            .push(format!("To pin, as others would push them out: {}.", pins.collect::<Vec<_>>().join(", ")));
    }
    if advice.left_out > 0 {
        notes.push(format!(
            "{} came after what is kept of a capture, and are not counted.",
            counted(advice.left_out, "packet")
        ));
    }
    notes
}
