//! What the keeper of keys reports, as lines of the log.

use strait_ipsec::PeerId;
use strait_keying::Event;

/// Logs `event`; `name` says what a peer is called.
pub(super) fn log(event: &Event, name: impl Fn(PeerId) -> String) {
    match event {
        Event::Established { peer, suite, inbound, outbound, replaces, .. } => {
            let (peer, what) = (name(*peer), if replaces.is_some() { "rekeyed" } else { "session" });
            tracing::info!(peer, %suite, %inbound, %outbound, "{what}");
        }
        Event::Moved { peer, to } => tracing::info!(peer = name(*peer), %to, "peer moved"),
        Event::Failed { peer, why, failures, retry } => {
            tracing::warn!(peer = name(*peer), failures, ?retry, "handshake failed: {why}");
        }
        Event::Refused { from, why } => tracing::warn!(%from, "refused: {why}"),
        Event::Unresolved { peer, name: host, why } => {
            tracing::warn!(peer = name(*peer), host, "endpoint not found: {why}");
        }
        Event::NoEndpoint { peer } => {
            tracing::info!(peer = name(*peer), "packets wait for a peer that has no endpoint and has not called");
        }
        Event::Silent { peer } => tracing::info!(peer = name(*peer), "peer is silent"),
        Event::HandshakeStarted { peer, to } => tracing::debug!(peer = name(*peer), %to, "handshake"),
        Event::Yielded { peer } => tracing::debug!(peer = name(*peer), "the peer's own handshake goes on"),
        Event::Expired { peer, outbound } => {
            tracing::info!(peer = name(*peer), %outbound, "idle session expired");
        }
        other => tracing::info!(?other, "session"),
    }
}
