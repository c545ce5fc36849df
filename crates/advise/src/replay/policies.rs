//! What the policies of a rule against length leaks cost: the same packets through a tunnel for each of them.

use serde::Serialize;
use strait_clock::Time;
use strait_ipsec::{LeakPolicy, Mix, Padding};

use super::ReplayLink;
use crate::tunnel::{Ledger, MeteredUnit, ReplayTunnel};
use crate::{MachineModel, Side, TunnelVariant};

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

/// A tunnel for each policy.
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
            let spec = link.spec(TunnelVariant::Both, policy);
            (policy, ReplayTunnel::new(spec, machine), WireSum::default())
        };
        PolicyTunnels(COMPARED.map(tunnel).into())
    }

    pub(super) fn offer(&mut self, side: Side, packet: &[u8], at: Time) {
        self.0.iter_mut().for_each(|(_, tunnel, sum)| tunnel.offer(side, packet, (), at, sum));
    }

    pub(super) fn finish(&mut self) {
        self.0.iter_mut().for_each(|(_, tunnel, sum)| tunnel.finish(sum));
    }

    /// What each policy cost.
    pub(super) fn costs(&self) -> Vec<PolicyCost> {
        let cost = |(policy, tunnel, sum): &(LeakPolicy, ReplayTunnel<()>, WireSum)| {
            let (pauses, paused_packets) = tunnel.pauses();
            PolicyCost {
                padding: policy.padding.name(),
                mix: policy.mix.name(),
                pause: policy.pause,
                wire_bytes: sum.0,
                pauses,
                paused_packets,
            }
        };
        self.0.iter().map(cost).collect()
    }
}
