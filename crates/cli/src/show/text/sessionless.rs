//! Keys without sessions, as people read them.

use strait_node::report::{CacheReport, SessionlessPeerReport, SessionlessReport};

use crate::table::TextTable;
use crate::units;

/// How packets to a peer are protected.
pub(crate) fn keys(peer: &SessionlessPeerReport) -> String {
    let path = if peer.one_way { ", one way" } else { "" };
    let daily = match (&peer.daily_key, &peer.outbound_spi) {
        (Some(day), _) => format!(", daily key of {day}"),
        // What comes next has one, if the peer knows this node's.
        (None, Some(_)) if peer.daily_keys_until.is_some() => ", no daily key in use".to_owned(),
        _ => String::new(),
    };
    let hybrid = if peer.hybrid { " with ML-KEM-768" } else { "" };
    let session = if peer.has_session { "; the session goes on until the peer does without" } else { "" };
    format!("{}{hybrid}{daily}{path}{session}", peer.suite)
}

/// The packet keys in use.
pub(crate) fn packet_keys(peer: &SessionlessPeerReport) -> String {
    if let Some(why) = &peer.refused {
        return format!("nothing is sent: {why}");
    }
    let inbound = match peer.inbound_spis.first() {
        Some(spi) => format!("SPI in {spi}"),
        None => "none in".to_owned(),
    };
    let outbound = match (&peer.outbound_spi, peer.key_age_seconds) {
        (Some(spi), Some(age)) => {
            let said = if peer.acknowledged { ", acknowledged" } else { "" };
            format!("out {spi}, {} old{said}", units::seconds(age))
        }
        _ => "none out".to_owned(),
    };
    format!("{inbound}, {outbound}")
}

/// How the caches did.
pub(crate) fn caches(report: &SessionlessReport) -> TextTable {
    let mut table = TextTable::new(["cache", "entries", "hits", "misses", "misses took", "evicted"]);
    for cache in &report.caches {
        let numbers = [cache.entries as u64, cache.hits, cache.misses, cache.evicted];
        let [entries, hits, misses, evicted] = numbers.map(|number| number.to_string());
        let took = miss_time(cache).unwrap_or_else(|| "-".to_owned());
        table.row([cache.cache.clone(), entries, hits, misses, took, evicted]);
    }
    table
}

/// Returns what the misses of a cache took together, in ms; none where they take no time by themselves.
pub(super) fn miss_time(cache: &CacheReport) -> Option<String> {
    let ms = cache.miss_seconds? * 1e3;
    // A single derivation takes microseconds.
    let places = if ms < 10.0 { 3 } else { 1 };
    Some(format!("{ms:.places$} ms"))
}

/// What was refused.
pub(crate) fn refusals(report: &SessionlessReport) -> TextTable {
    let mut table = TextTable::new(["reason", "datagrams"]);
    for refusal in report.refusals.iter().filter(|refusal| refusal.datagrams > 0) {
        table.row([refusal.reason.clone(), refusal.datagrams.to_string()]);
    }
    table
}
