//! What changes between two handshakes: how busy an end is, and how fast its link.

use strait_crypto::Suite;
use strait_ipsec::{PeerId, outbound};
use strait_scheduler::{LinkRate, Rate};
use strait_wire::condition::Condition;

use super::{Action, Control};

/// How often a change is said, one second apart: one of them arrives, even where every fifth datagram is lost.
pub(super) const TIMES: u8 = 4;

/// A rate in, as a condition has it.
fn said(down: LinkRate) -> u64 {
    match down {
        LinkRate::Unpaced => 0,
        LinkRate::Given(rate) => rate.bits(),
        LinkRate::Auto => Condition::AUTO,
    }
}

/// What a condition says of the rate in, if that is one.
fn heard(down: u64) -> Option<LinkRate> {
    match down {
        0 => Some(LinkRate::Unpaced),
        Condition::AUTO => Some(LinkRate::Auto),
        bits => Rate::from_bits(bits).map(LinkRate::Given),
    }
}

impl Control {
    /// Everything takes this node so many times longer than its peers were told.
    pub(super) fn slowed(&mut self, times: f64) {
        // As a float becomes an integer: nonsense becomes the nearest end of the range.
        self.load = ((times * f64::from(Condition::USUAL)) as u16).max(1);
        self.report_to_all();
    }

    /// Tells all peers what changed, now and a few times more.
    pub(super) fn report_to_all(&mut self) {
        let peers: Vec<PeerId> = self.peers.keys().copied().collect();
        for id in peers {
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.reports = TIMES;
            }
            self.report(id);
        }
    }

    /// Says it once more, if it is to be said again; a peer without associations learns it with its next keys.
    pub(super) fn report(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id).filter(|peer| peer.reports > 0) else { return };
        if peer.pair.is_none() {
            peer.reports = 0;
            return;
        }
        peer.reports -= 1;
        let condition = Condition { load: self.load, down: said(self.capabilities.down) };
        self.actions.push_back(Action::Out(outbound::Order::Report(id, condition)));
    }

    /// A peer says what changed there. It can say what it likes: it is paced by it, and what it is sent is compressed
    /// accordingly, within bounds.
    pub(super) fn reported(&mut self, id: PeerId, condition: Condition) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(capabilities) = &mut peer.capabilities else { return };
        let load = f64::from(condition.load.max(1)) / f64::from(Condition::USUAL);
        // A rate that is none is not an unpaced link's either.
        let Some(down) = heard(condition.down) else { return };
        if (capabilities.down, peer.load) == (down, load) {
            return;
        }
        (capabilities.down, peer.load) = (down, load);
        if let Some(suite) = peer.pair.as_ref().map(|pair| pair.suite) {
            self.tell_ends(id, suite);
        }
        self.pace(id);
    }

    /// Tells the sending half what both ends do with every byte.
    pub(super) fn tell_ends(&mut self, id: PeerId, suite: Suite) {
        let Some(peer) = self.peers.get(&id) else { return };
        let Some(theirs) = &peer.capabilities else { return };
        let ends = self.capabilities.ends(theirs, suite).loaded(peer.load);
        self.actions.push_back(Action::Out(outbound::Order::Ends(id, Box::new(ends))));
    }
}
