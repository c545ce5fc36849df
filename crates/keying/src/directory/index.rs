//! Certificates by what they are asked for by: the hash of a key or of a name, or an address.

use core::net::IpAddr;
use std::collections::BTreeMap;

use ipnet::IpNet;
use strait_wire::sessionless::{Name, Nsid};

use super::certificate::Certificate;
use crate::PublicKey;

/// The address that a name is, if it is one.
#[must_use]
pub fn address_of(name: &Name) -> Option<IpAddr> {
    match name.space() {
        Nsid::Ipv4 => <[u8; 4]>::try_from(name.bytes()).ok().map(IpAddr::from),
        Nsid::Ipv6 => <[u8; 16]>::try_from(name.bytes()).ok().map(IpAddr::from),
        _ => None,
    }
}

impl Certificate {
    /// Whether this is what was asked for by `name`.
    #[must_use]
    pub fn answers(&self, name: &Name) -> bool {
        match address_of(name) {
            Some(address) => self.has(address),
            None => *name == self.key_name() || *name == self.text_name(),
        }
    }
}

/// Whose certificate answers which name; of two with the same network, that which came last.
#[derive(Debug, Default)]
pub struct CertificateIndex {
    names: BTreeMap<Name, PublicKey>,
    networks: BTreeMap<IpNet, PublicKey>,
}

impl CertificateIndex {
    /// Adds a certificate.
    pub fn insert(&mut self, certificate: &Certificate) {
        let key = *certificate.key();
        self.names.insert(certificate.key_name(), key);
        self.names.insert(certificate.text_name(), key);
        self.networks.extend(certificate.terms().networks.iter().map(|network| (network.trunc(), key)));
    }

    /// Removes what leads to this certificate.
    pub fn remove(&mut self, certificate: &Certificate) {
        let key = certificate.key();
        for name in [certificate.key_name(), certificate.text_name()] {
            if self.names.get(&name) == Some(key) {
                self.names.remove(&name);
            }
        }
        for network in &certificate.terms().networks {
            if self.networks.get(&network.trunc()) == Some(key) {
                self.networks.remove(&network.trunc());
            }
        }
    }

    /// Whose certificate answers `name`: of an address, that with the longest network.
    #[must_use]
    pub fn find(&self, name: &Name) -> Option<PublicKey> {
        let Some(address) = address_of(name) else { return self.names.get(name).copied() };
        let most = if address.is_ipv4() { 32 } else { 128 };
        (0..=most).rev().find_map(|len| {
            let network = IpNet::new(address, len).ok()?.trunc();
            self.networks.get(&network).copied()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::CertificateTerms;
    use crate::sessionless::{EpochLength, KeyCard, text_name};
    use crate::{Capabilities, PrivateKey};

    fn certificate(node: u8, name: &str, networks: &[&str]) -> Certificate {
        let own = PrivateKey::generate(&[node; 32]);
        let card = KeyCard {
            name: "self".parse().unwrap(),
            key: own.public(),
            kem: None,
            valid: (0, u64::MAX),
            epoch: EpochLength::default(),
            capabilities: Capabilities::typical(),
        };
        let terms = CertificateTerms {
            serial: node.into(),
            name: name.parse().unwrap(),
            networks: networks.iter().map(|network| network.parse().unwrap()).collect(),
            valid: (0, u64::MAX),
            endpoint: None,
        };
        Certificate::issue(&PrivateKey::generate(&[99; 32]), &terms, &card.sign(&own)).unwrap()
    }

    fn at(address: &str) -> Name {
        Name::address(address.parse().unwrap())
    }

    #[test]
    fn a_certificate_is_found_by_key_name_and_the_longest_network() {
        let (wide, narrow) = (
            certificate(1, "wide", &["10.77.0.0/16", "fd77::/16"]),
            certificate(2, "narrow", &["10.77.5.0/24"]),
        );
        let mut index = CertificateIndex::default();
        [&wide, &narrow].into_iter().for_each(|certificate| index.insert(certificate));
        for (name, owner) in [
            (at("10.77.4.1"), Some(&wide)),
            (at("10.77.5.1"), Some(&narrow)),
            (at("fd77::9"), Some(&wide)),
            (at("10.78.0.1"), None),
            (wide.key_name(), Some(&wide)),
            (text_name("narrow"), Some(&narrow)),
            (text_name("none"), None),
            (Name::NONE, None),
        ] {
            assert_eq!(index.find(&name), owner.map(|owner| *owner.key()), "{name:?}");
            assert!(owner.is_none_or(|owner| owner.answers(&name)), "{name:?}");
        }
        assert!(!wide.answers(&narrow.key_name()) && !narrow.answers(&at("10.77.4.1")));
        index.remove(&narrow);
        assert_eq!(index.find(&at("10.77.5.1")), Some(*wide.key()));
        assert_eq!(index.find(&narrow.key_name()), None);
    }

    #[test]
    fn what_another_has_taken_over_stays_its_own() {
        let (before, after) =
            (certificate(1, "a", &["10.77.1.0/24"]), certificate(2, "a", &["10.77.1.0/24"]));
        let mut index = CertificateIndex::default();
        index.insert(&before);
        index.insert(&after);
        index.remove(&before);
        assert_eq!(index.find(&at("10.77.1.1")), Some(*after.key()));
        assert_eq!(index.find(&text_name("a")), Some(*after.key()));
    }
}
