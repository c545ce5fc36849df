//! Which handshakes of strangers are let in while many come.
//!
//! Until TLS is complete no peer is known, so this counts: a few may begin unproven, more only after they
//! showed that they receive at their address (RFC 9000 section 8.1.2), and an end to it.

use std::net::IpAddr;

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
}

/// Decides with `all` handshakes under way, `same` of them from the sender's [`source`].
pub(crate) const fn judge(all: usize, same: usize, address: Address) -> AdmissionVerdict {
    match address {
        Address::Claimed if all < UNPROVEN => AdmissionVerdict::Admit,
        Address::Claimed => AdmissionVerdict::Prove,
        Address::Proven if same >= MOST_FROM_ONE => AdmissionVerdict::Ignore,
        Address::Proven if all < MOST => AdmissionVerdict::Admit,
        Address::Proven => AdmissionVerdict::Replace,
    }
}

/// What counts as one sender: an IPv4 address, the upper half of an IPv6 one.
pub(crate) fn source(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        // The top bit of a global IPv6 address is clear and that of this never: the two do not meet.
        IpAddr::V6(address) => u64::try_from(address.to_bits() >> 64).unwrap_or(0) | 1 << 63,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_depends_on_load_and_proof_of_address() {
        use Address::{Claimed, Proven};
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
            (MOST, MOST_FROM_ONE, Proven, Ignore),
        ];
        for (all, same, address, verdict) in table {
            assert_eq!(judge(all, same, address), verdict, "{all} {same} {address:?}");
        }
    }

    #[test]
    fn one_site_is_one_source() {
        let of = |text: &str| source(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_ne!(of("::1"), of("0.0.0.0"));
    }
}
