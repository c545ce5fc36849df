//! The near end of a link without a kernel: IP packets as they cross.

use std::time::Duration;

use strait_testbed::LinkEnd;
use strait_testbed::outside::PYTHON;

use crate::lines::Lines;
use crate::scapy::{hex, unhex};

/// How long the program may take to start.
const START: Duration = Duration::from_secs(60);

/// Sends and receives whole IP packets at one end of a link.
pub(crate) struct Wire(Lines);

impl Wire {
    /// Takes part at `end`; the packets are those to and from `neighbour`, a hardware address.
    pub(crate) fn open(end: &LinkEnd, neighbour: [u8; 6]) -> Wire {
        let mut lines =
            Lines::start(end.host.command(PYTHON), "wire.py", &[&end.interface, &hex(&neighbour)]);
        assert_eq!(lines.receive(START).as_deref(), Some("ready"));
        Wire(lines)
    }

    /// Sends a packet.
    pub(crate) fn send(&mut self, packet: &[u8]) {
        self.0.send(&hex(packet));
    }

    /// The next packet, if one comes in time.
    pub(crate) fn receive(&mut self, patience: Duration) -> Option<Vec<u8>> {
        self.0.receive(patience).map(|line| unhex(&line))
    }
}
