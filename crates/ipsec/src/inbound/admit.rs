//! Step 7: a peer can only send from its own addresses, and only to where it may.

use std::net::IpAddr;

use crate::inbound::Forwarding;
use crate::{PeerId, Policies, Reason};

/// The check, with the last answer kept: a stream asks the same thousands of times.
#[derive(Debug)]
pub(crate) struct Admission {
    forwarding: Forwarding,
    last: Option<(IpAddr, IpAddr, PeerId)>,
}

impl Admission {
    pub(crate) const fn new(forwarding: Forwarding) -> Admission {
        Admission { forwarding, last: None }
    }

    /// To be called when the policies change.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    /// Whether `peer` may send from `src` to `dst`.
    pub(crate) fn check(
        &mut self,
        policies: &Policies,
        peer: PeerId,
        src: IpAddr,
        dst: IpAddr,
    ) -> Result<(), Reason> {
        if self.last == Some((src, dst, peer)) {
            return Ok(());
        }
        if policies.owner(src) != Some(peer) {
            return Err(Reason::ForeignSource);
        }
        if !policies.may_meet(peer, dst, self.forwarding) {
            return Err(Reason::NotForwarding);
        }
        self.last = Some((src, dst, peer));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies() -> Policies {
        let mut policies = Policies::new();
        policies.allow("10.0.1.0/24".parse().unwrap(), PeerId(1));
        policies.allow("10.0.2.0/24".parse().unwrap(), PeerId(2));
        policies.allow("10.0.0.0/16".parse().unwrap(), PeerId(3));
        policies.allow("0.0.0.0/0".parse().unwrap(), PeerId(4));
        policies.add_local("10.0.2.9".parse().unwrap());
        policies.name_network("198.18.5.0/24".parse().unwrap());
        policies
    }

    #[test]
    fn a_peer_reaches_no_network_that_is_not_named() {
        let policies = policies();
        for (forwarding, src, dst, expected) in [
            (Forwarding::None, "10.0.1.5", "198.18.5.1", Ok(())),
            (Forwarding::None, "10.0.1.5", "192.0.2.1", Err(Reason::NotForwarding)),
            (Forwarding::None, "10.0.2.5", "198.18.5.1", Err(Reason::ForeignSource)),
            (Forwarding::None, "10.0.9.5", "198.18.5.1", Err(Reason::ForeignSource)),
            (Forwarding::None, "8.8.8.8", "198.18.5.1", Err(Reason::ForeignSource)),
            (Forwarding::None, "10.0.1.5", "10.0.2.1", Err(Reason::NotForwarding)),
            (Forwarding::None, "10.0.1.5", "10.0.2.9", Ok(())),
            (Forwarding::None, "10.0.1.5", "10.0.1.7", Err(Reason::NotForwarding)),
            (Forwarding::Between, "10.0.1.5", "10.0.2.1", Ok(())),
            (Forwarding::Between, "10.0.1.5", "10.0.1.7", Err(Reason::NotForwarding)),
            (Forwarding::Between, "10.0.1.5", "192.0.2.1", Err(Reason::NotForwarding)),
            (Forwarding::Between, "10.0.2.5", "10.0.1.1", Err(Reason::ForeignSource)),
        ] {
            let mut admission = Admission::new(forwarding);
            let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
            for _ in 0..2 {
                assert_eq!(admission.check(&policies, PeerId(1), src, dst), expected, "{src} {dst}");
            }
        }
    }
}
