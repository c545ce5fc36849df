//! What is shown of keys without sessions.

use strait_clock::Time;
use strait_ipsec::ReturnPath;
use strait_keying::SessionlessStatus;
use strait_keying::sessionless::{CacheCounts, ReceiverCounts, Refusal};

use crate::report::{CacheReport, RefusalReport, SessionlessPeerReport, SessionlessReport};

/// What all peers share.
pub(super) fn shared(counts: &ReceiverCounts) -> SessionlessReport {
    let derived = |name: &str, counts: CacheCounts| CacheReport::new(name, counts, Some(counts.took));
    SessionlessReport {
        packet_keys: counts.packet_keys.entries,
        caches: vec![
            derived("packet-keys", counts.packet_keys),
            derived("epoch-keys", counts.epoch_keys),
            derived("secrets", counts.secrets),
            derived("daily-secrets", counts.daily_secrets),
            // Who is not there is looked up by others, or nowhere.
            CacheReport::new("senders", counts.senders, None),
            CacheReport::new("unknown-names", counts.unknown_names, None),
        ],
        refusals: Refusal::ALL
            .into_iter()
            .map(|why| RefusalReport { reason: why.name().to_owned(), datagrams: counts.refusals.of(why) })
            .collect(),
    }
}

/// One peer.
pub(super) fn peer(status: &SessionlessStatus, now: Time) -> SessionlessPeerReport {
    let ago = |at: Time| now.since(at).as_secs_f64();
    let key = status.outbound.as_ref();
    SessionlessPeerReport {
        one_way: status.path == ReturnPath::OneWay,
        suite: status.suite.name().to_owned(),
        hybrid: status.hybrid,
        daily_key: status.day.map(|day| day.to_string()),
        daily_keys_until: status.daily_until.map(|day| day.to_string()),
        has_session: status.has_session,
        outbound_spi: key.map(|key| key.spi.to_string()),
        acknowledged: status.began.is_some_and(|(_, bound)| bound),
        key_age_seconds: status.began.map(|(at, _)| ago(at)),
        keys_begun: status.begun,
        inbound_spis: status.inbound.iter().map(|key| key.spi.to_string()).collect(),
        last_received_age_seconds: status.inbound.iter().filter_map(|key| key.last).max().map(ago),
        last_sent_age_seconds: key.and_then(|key| key.last).map(ago),
        refused: status.refused.map(|why| why.to_string()),
    }
}
