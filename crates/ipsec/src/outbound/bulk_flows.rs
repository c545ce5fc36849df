//! Which flows send so much that they get blocks of their own, and with them a history.

use core::time::Duration;

use strait_clock::Time;

/// Flows whose bytes are counted: more are seldom in bulk at once on a link that is worth a history.
const FLOWS: usize = 64;
/// Bytes after which a flow is bulk: less gains nothing, as nothing of it would be acknowledged in time.
const BULK: u32 = 16_384;
/// Packets below that do not make a flow bulk: those of many flows shrink more together than each flow's behind its own history (64 bytes
/// of eight SNMP devices on 1.5 Mbit/s: by an eighth).
const LEAST: usize = 512;
/// A flow that was silent for so long begins anew.
const SILENT: Duration = Duration::from_secs(2);

/// A flow that was seen.
#[derive(Clone, Copy, Debug, Default)]
struct SeenFlow {
    hash: u64,
    bytes: u32,
    at: Time,
}

/// Bytes of the flows seen last.
#[derive(Debug)]
pub(super) struct BulkFlows {
    seen: [SeenFlow; FLOWS],
}

impl Default for BulkFlows {
    fn default() -> BulkFlows {
        BulkFlows { seen: [SeenFlow::default(); FLOWS] }
    }
}

impl BulkFlows {
    /// Counts a packet of the flow with this hash; whether the flow is bulk.
    pub(super) fn note(&mut self, hash: u64, bytes: usize, now: Time) -> bool {
        let at = self.seen.iter().position(|flow| flow.hash == hash);
        let flow = match at {
            Some(at) => self.seen.get_mut(at),
            None => self.seen.iter_mut().min_by_key(|flow| flow.at),
        };
        let Some(flow) = flow else { return false };
        if flow.hash != hash || now.since(flow.at) > SILENT {
            *flow = SeenFlow { hash, ..SeenFlow::default() };
        }
        flow.at = now;
        if bytes >= LEAST {
            flow.bytes = flow.bytes.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        flow.bytes >= BULK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_becomes_bulk_and_is_forgotten_when_it_is_silent() {
        let mut flows = BulkFlows::default();
        let mut now = Time::ZERO + Duration::from_secs(10);
        let bulk: Vec<bool> = (0..13).map(|_| flows.note(7, 1_400, now)).collect();
        assert_eq!(bulk.iter().filter(|bulk| **bulk).count(), 2);
        now += Duration::from_secs(3);
        assert!(!flows.note(7, 1_400, now));
    }

    #[test]
    fn small_packets_make_no_flow_bulk_and_leave_one_that_is() {
        let mut flows = BulkFlows::default();
        let now = Time::ZERO + Duration::from_secs(10);
        assert!(!(0..10_000).any(|_| flows.note(7, 92, now)));
        assert!((0..13).map(|_| flows.note(7, 1_400, now)).last().unwrap());
        assert!(flows.note(7, 40, now));
    }

    #[test]
    fn flows_beyond_the_table_take_the_place_of_the_one_seen_least_lately() {
        let mut flows = BulkFlows::default();
        let mut now = Time::ZERO + Duration::from_secs(10);
        assert!(flows.note(1, 20_000, now));
        for hash in 2..70 {
            now += Duration::from_millis(1);
            assert!(flows.note(1, 1, now), "it goes on sending");
            flows.note(hash, 100, now);
        }
        assert!(!flows.note(2, 16_300, now), "its place was taken");
    }
}
