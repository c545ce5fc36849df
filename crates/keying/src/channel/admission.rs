//! Which handshakes of strangers are let in while many come.
//!
//! Until TLS is complete no peer is known, so this counts: a few may begin unproven, more only after they
//! showed that they receive at their address (RFC 9000 section 8.1.2), and an end to it.

/// Handshakes under way beyond which a stranger has to prove its address first.
pub(crate) const UNPROVEN: usize = 8;
/// Handshakes under way beyond which each that begins takes the place of the oldest.
pub(crate) const MOST: usize = 64;
/// Handshakes under way from one address (of IPv6: one /64, which one site gets) at most, once addresses
/// are proven.
pub(crate) const MOST_FROM_ONE: usize = 8;

/// The decision about a handshake that another node begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionVerdict {
    /// It goes on.
    Admit,
    /// Its sender has to show that it receives at its address, without any state here.
    Prove,
    /// It goes on in place of the oldest that is not through yet: to keep others out, an attacker has to
    /// begin as many within one of their RTTs, from proven addresses.
    Replace,
    /// It is dropped without a word.
    Ignore,
}

/// Whether the sender has shown that it receives at its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// Not yet.
    Claimed,
    /// Yes.
    Proven,
    /// A peer is there, or the sender has the pre-shared token.
    Peers,
}

/// Decides with `all` handshakes under way, `same` of them from the sender's [`Source`](strait_ipsec::Source).
pub(crate) const fn judge(all: usize, same: usize, address: Address) -> AdmissionVerdict {
    match address {
        Address::Claimed if all < UNPROVEN => AdmissionVerdict::Admit,
        Address::Claimed => AdmissionVerdict::Prove,
        Address::Proven | Address::Peers if same >= MOST_FROM_ONE => AdmissionVerdict::Ignore,
        Address::Proven | Address::Peers if all < MOST => AdmissionVerdict::Admit,
        Address::Proven | Address::Peers => AdmissionVerdict::Replace,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_depends_on_load_and_proof_of_address() {
        use Address::{Claimed, Peers, Proven};
        use AdmissionVerdict::{Admit, Ignore, Prove, Replace};
        let table = [
            (0, 0, Claimed, Admit),
            (UNPROVEN - 1, UNPROVEN - 1, Claimed, Admit),
            (UNPROVEN, 0, Claimed, Prove),
            (MOST, 0, Claimed, Prove),
            (UNPROVEN, 0, Proven, Admit),
            (MOST - 1, MOST_FROM_ONE - 1, Proven, Admit),
            (MOST - 1, MOST_FROM_ONE, Proven, Ignore),
            (MOST, 0, Proven, Replace),
            (UNPROVEN, 0, Peers, Admit),
            (MOST, 0, Peers, Replace),
            (MOST, MOST_FROM_ONE, Peers, Ignore),
            (MOST, MOST_FROM_ONE, Proven, Ignore),
        ];
        for (all, same, address, verdict) in table {
            assert_eq!(judge(all, same, address), verdict, "{all} {same} {address:?}");
        }
    }
}
