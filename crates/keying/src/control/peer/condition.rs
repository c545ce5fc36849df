//! What changes between two handshakes: how busy an end is, and how fast its link.

use strait_ipsec::{ReportWish, outbound};
use strait_scheduler::{LinkRate, Rate};
use strait_wire::condition::Condition;

use super::super::context::ControlContext;
use super::PeerRecord;

/// How often a change is said, one second apart: one of them arrives, even where every fifth datagram is lost.
pub(crate) const TIMES: u8 = 4;

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

impl PeerRecord {
    /// Tells the peer what changed here, now and a few times more.
    pub(crate) fn report_change(&mut self, context: &mut ControlContext) {
        self.announced.reports_left = TIMES;
        self.report(context);
    }

    /// Says it once more, if it is to be said again; a peer without associations learns it with its next keys.
    pub(crate) fn report(&mut self, context: &mut ControlContext) {
        if self.announced.reports_left == 0 {
            return;
        }
        if self.pairs.in_use().is_none() {
            self.announced.reports_left = 0;
            return;
        }
        self.announced.reports_left -= 1;
        let condition = Condition {
            load: context.node.load,
            down: said(context.node.capabilities.down),
            estimates: Some(context.node.reports() == ReportWish::Often),
        };
        context.order_out(outbound::Order::Report(self.id(), condition));
    }

    /// A peer says what changed there. It can say what it likes: it is paced by it, and what it is sent is compressed
    /// accordingly, within bounds.
    pub(crate) fn reported(&mut self, condition: Condition, context: &mut ControlContext) {
        let Some(capabilities) = &mut self.theirs.capabilities else { return };
        let load = f64::from(condition.load.max(1)) / f64::from(Condition::USUAL);
        // A rate that is none is not an unpaced link's either.
        let Some(down) = heard(condition.down) else { return };
        let reports = match condition.estimates {
            Some(true) => ReportWish::Often,
            Some(false) => ReportWish::Changes,
            None => capabilities.reports,
        };
        if (capabilities.down, capabilities.reports, self.theirs.load) == (down, reports, load) {
            return;
        }
        (capabilities.down, capabilities.reports, self.theirs.load) = (down, reports, load);
        self.tell_ends(context);
        self.update_pace(context);
    }

    /// Tells the sender what both ends do with every byte.
    pub(crate) fn tell_ends(&self, context: &mut ControlContext) {
        let (Some(pair), Some(theirs)) = (self.pairs.in_use(), &self.theirs.capabilities) else { return };
        let ends = context.node.capabilities.ends(theirs, pair.suite).loaded(self.theirs.load);
        context.order_out(outbound::Order::Ends(self.id(), Box::new(ends)));
    }
}
