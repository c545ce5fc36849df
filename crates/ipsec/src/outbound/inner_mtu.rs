//! How large an inner packet the path takes, reported to the key manager and to hosts.

use core::sync::atomic::Ordering;

use strait_clock::Time;
use strait_scheduler::Budget;
use strait_wire::icmp;
use strait_wire::ip::Version;

use super::context::Outlet;
use super::link::Link;
use crate::counters::INNER_MIN;
use crate::offload::SuperPacket;
use crate::{Notice, Payloads, Reason};

/// ICMP answers a second to hosts on this side, and so many at once (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4 f): a tenth of
/// what Linux sends of all kinds, with its burst (`icmp_msgs_per_sec`, `icmp_msgs_burst`).
const ANSWERS: u64 = 100;
const ANSWERS_BURST: u64 = 50;

/// The budget of ICMP answers to hosts on this side: for packets to one peer, or for those that no peer has.
pub(super) fn answers() -> Budget {
    Budget::new(ANSWERS, ANSWERS_BURST)
}

/// Says how large an inner packet may be from now on.
pub(super) fn announce_mtu(link: &Link, outlet: &mut impl Outlet) {
    let path = &link.association.path;
    link.spec.counters.stream.show_outer((!path.is_searching()).then(|| path.outer()));
    let room = link.association.inner_mtu(Version::V4);
    link.spec.counters.inner_mtu.store(room as u64, Ordering::Relaxed);
    outlet.notice(Notice::InnerMtu(link.spec.id, u16::try_from(room).unwrap_or(u16::MAX)));
}

/// Refuses what no datagram on this path carries, and informs its sender by ICMP (RFC 1191, RFC 8201), if there was not much to
/// answer lately.
pub(super) fn refuse_too_big(
    link: &mut Link,
    packet: &SuperPacket<'_>,
    now: Time,
    outlet: &mut impl Outlet,
) -> Result<(), Reason> {
    let (len, association) = (packet.len(0), &link.association);
    // Before the search for the path's size is over, and for what may be fragmented, several datagrams carry one packet; no
    // sender is told a size that is about to change.
    let several = match association.sa.as_ref().map(|sa| sa.payloads) {
        Some(Payloads::Strait { .. }) if len > association.unit_max(0) => false,
        Some(Payloads::Strait { .. }) => {
            association.path.is_searching() || len <= INNER_MIN || !packet.ip().dont_fragment()
        }
        Some(Payloads::Aggfrag) | None => true,
        Some(Payloads::Standard(_)) => false,
    };
    if several || association.carries(packet.ip(), len) || association.lead_for_now() > 0 {
        return Ok(());
    }
    if !link.answers.take(1, now) {
        return Err(Reason::TooBig);
    }
    let mut answer = [0; INNER_MIN];
    let mtu = u16::try_from(association.inner_mtu(packet.ip().version())).unwrap_or(u16::MAX);
    if let Some(len) = icmp::too_big(packet.ip().bytes(), mtu, packet.ip().dst(), &mut answer) {
        outlet.to_host(answer.get(..len).unwrap_or_default());
    }
    Err(Reason::TooBig)
}
