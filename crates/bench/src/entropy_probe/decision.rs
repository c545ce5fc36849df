//! The whole decision on a packet: the entropy probe, what its class remembers, the choice, and what is learned.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use strait_clock::Time;
use strait_compress::{
    Allowed, Calibration, Chooser, Codec, CodecSet, EndpointCosts, LiveChooser, Outcome, PathCost, RuleId,
    Unit,
};
use strait_model::BitRate;
use strait_wire::{Flow, Protocol};

/// Bits per second of the link: so fast that the decision is made as often as it ever is where it matters.
const LINK: f64 = 1e9;

/// Decides on one packet after the other of one flow, at the times at which a link of 1 Gbit/s has room for them; what is
/// compressed shrinks to half. Says whether it would be compressed.
pub(super) fn decision() -> impl FnMut(&[u8]) -> bool {
    let mut chooser = LiveChooser::new(Calibration::assumed(), 1);
    let flow = Flow {
        src: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
        dst: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
        protocol: Protocol::TCP,
        src_port: 40_000,
        dst_port: 443,
    };
    let path_cost = PathCost {
        engines: core::num::NonZeroU32::MIN,
        rate: BitRate::bits(LINK),
        waiting: true,
        room: 1_400,
        around: 60,
        codecs: CodecSet::ALL,
        only: None,
        prefix: 0,
        ends: EndpointCosts::ALIKE,
    };
    let mut now = Time::ZERO;
    move |payload| {
        let unit = Unit { flow: &flow, to: 1, rule: RuleId { place: 0, edition: 0 }, allowed: Allowed::Any };
        now += Duration::from_secs_f64(payload.len() as f64 * 8.0 / LINK);
        if !chooser.may_shrink(&unit, payload, now) {
            return false;
        }
        let method = chooser.choose(&unit, payload.len(), &path_cost, now);
        if method.codec == Codec::None {
            return false;
        }
        let before = payload.len();
        let outcome = Outcome {
            method,
            before,
            of: before,
            after: Some(before / 2),
            took: Some(before as u64 * 3),
            prefix: 0,
        };
        chooser.learn(&unit, &outcome, now);
        true
    }
}
