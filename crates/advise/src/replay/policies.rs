//! What the policies of a rule against length leaks cost: the same packets through a tunnel for each of them.

use serde::Serialize;
use strait_clock::Time;
use strait_ipsec::{LeakPolicy, Mix, Padding};

use super::ReplayLink;
use crate::tunnel::{Ledger, MeteredUnit, ReplayTunnel, Spec};
use crate::{MachineModel, TunnelVariant};

/// The policies that are compared: none, each kind of padding, one flow a block, pauses.
const COMPARED: [LeakPolicy; 6] = [
    LeakPolicy::NONE,
    LeakPolicy { padding: Padding::Padme, ..LeakPolicy::NONE },
    LeakPolicy { padding: Padding::Buckets, ..LeakPolicy::NONE },
    LeakPolicy { padding: Padding::Constant, ..LeakPolicy::NONE },
    LeakPolicy { mix: Mix::Flow, ..LeakPolicy::NONE },
    LeakPolicy { pause: true, ..LeakPolicy::NONE },
];

/// What a policy costs, with all traffic in one trust domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyCost {
    /// `none`, `padme`, `buckets` or `constant`.
    pub padding: &'static str,
    /// `domain` or `flow`.
    pub mix: &'static str,
    /// Whether compressing pauses after many blocks that are nearly equal.
    pub pause: bool,
    /// Bytes on the wire with aggregation and compression.
    pub wire_bytes: u64,
    /// How often compressing paused.
    pub pauses: u64,
    /// Packets that were not compressed because of a pause.
    pub paused_packets: u64,
}

/// A tunnel for each policy, in one direction.
#[derive(Debug)]
pub(super) struct PolicyTunnels(Vec<(LeakPolicy, ReplayTunnel<()>, WireSum)>);

/// Bytes on the wire.
#[derive(Debug, Default)]
struct WireSum(u64);

impl Ledger<()> for WireSum {
    fn sent(&mut self, unit: &MeteredUnit, _: &[u8], _: &[((), usize)]) {
        self.0 += unit.wire;
    }
}

impl PolicyTunnels {
    pub(super) fn new(link: &ReplayLink, machine: &MachineModel) -> PolicyTunnels {
        let tunnel = |policy| {
            let (way, wait) = (TunnelVariant::Both, link.wait);
            let spec = Spec { way, policy, rate: link.rate, mtu: link.mtu, wait };
            (policy, ReplayTunnel::new(spec, machine), WireSum::default())
        };
        PolicyTunnels(COMPARED.map(tunnel).into())
    }

    pub(super) fn offer(&mut self, packet: &[u8], at: Time) {
        self.0.iter_mut().for_each(|(_, tunnel, sum)| tunnel.offer(packet, (), at, sum));
    }

    pub(super) fn finish(&mut self) {
        self.0.iter_mut().for_each(|(_, tunnel, sum)| tunnel.finish(sum));
    }
}

/// What each policy cost in all directions.
pub(super) fn costs<'a>(lanes: impl Iterator<Item = &'a PolicyTunnels>) -> Vec<PolicyCost> {
    let mut costs: Vec<PolicyCost> = Vec::new();
    for PolicyTunnels(tunnels) in lanes {
        for (place, (policy, tunnel, sum)) in tunnels.iter().enumerate() {
            let (pauses, paused_packets) = tunnel.pauses();
            match costs.get_mut(place) {
                Some(cost) => {
                    cost.wire_bytes += sum.0;
                    cost.pauses += pauses;
                    cost.paused_packets += paused_packets;
                }
                None => costs.push(PolicyCost {
                    padding: policy.padding.name(),
                    mix: policy.mix.name(),
                    pause: policy.pause,
                    wire_bytes: sum.0,
                    pauses,
                    paused_packets,
                }),
            }
        }
    }
    costs
}
