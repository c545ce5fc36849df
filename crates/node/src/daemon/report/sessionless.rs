//! What is shown of keys without sessions.

use strait_clock::Time;
use strait_ipsec::ReturnPath;
use strait_keying::sessionless::{CacheCounts, Refusal};
use strait_keying::{SessionlessCounts, SessionlessStatus};

use crate::report::{CacheReport, RefusalReport, SessionlessPeerReport, SessionlessReport};

/// What all peers share.
pub(super) fn shared(counts: &SessionlessCounts) -> SessionlessReport {
    let receiver = &counts.receiver;
    let cache = |name: &str, counts: CacheCounts| CacheReport {
        cache: name.to_owned(),
        entries: counts.entries,
        pinned: counts.pinned,
        hits: counts.hits,
        misses: counts.misses,
        evicted: counts.evicted,
    };
    let (hits, misses) = receiver.packet_keys;
    let packet_keys = CacheCounts { entries: counts.keys, pinned: 0, hits, misses, evicted: 0 };
    SessionlessReport {
        packet_keys: counts.keys,
        caches: vec![
            cache("packet-keys", packet_keys),
            cache("epoch-keys", receiver.epoch_keys),
            cache("secrets", receiver.secrets),
            cache("daily-secrets", receiver.daily_secrets),
            cache("senders", receiver.senders),
            cache("unknown-names", receiver.unknown_names),
        ],
        refusals: Refusal::ALL
            .into_iter()
            .map(|why| RefusalReport { reason: why.name().to_owned(), datagrams: receiver.refusals.of(why) })
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
