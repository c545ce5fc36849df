//! `pin` in `[directory]`.

use std::net::IpAddr;

use ipnet::IpNet;
use strait_keying::sessionless::{CardName, text_name};
use strait_wire::sessionless::Name;

use super::DirectoryCertificates;
use crate::config::problem::Problem;
use crate::config::reader::Section;

/// A peer that stays.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PinnedPeer {
    /// The one with this name.
    Name(CardName),
    /// The one with this address.
    Address(IpAddr),
}

impl PinnedPeer {
    fn parse(text: &str) -> Result<PinnedPeer, Problem> {
        if let Ok(address) = text.parse() {
            return Ok(PinnedPeer::Address(address));
        }
        text.parse().map(PinnedPeer::Name).map_err(|_| Problem::CertificateName)
    }

    /// Returns what its certificate is found by.
    pub(crate) fn question(&self) -> Name {
        match self {
            PinnedPeer::Name(name) => text_name(name.as_str()),
            PinnedPeer::Address(address) => Name::address(*address),
        }
    }

    /// Returns true for a peer with this name and these networks.
    pub(crate) fn is(&self, name: &str, networks: &[IpNet]) -> bool {
        match self {
            PinnedPeer::Name(pinned) => pinned.as_str() == name,
            PinnedPeer::Address(address) => networks.iter().any(|network| network.contains(address)),
        }
    }
}

/// Peers that stay, where `certificates` are looked up.
pub(super) fn pins(
    section: &Section<'_>,
    certificates: DirectoryCertificates,
    most: usize,
) -> Vec<PinnedPeer> {
    let read = section.list("pin", "a list of names or addresses, as [\"site-b\"]", PinnedPeer::parse);
    let mut pin: Vec<PinnedPeer> = read.into_iter().map(|pinned| pinned.value).collect();
    pin.sort_unstable();
    pin.dedup();
    if let Some(value) = section.value("pin") {
        if certificates == DirectoryCertificates::All {
            section.note(value.span(), Problem::NothingToPin);
        } else if pin.len() > most {
            section.note(value.span(), Problem::TooManyPins { most });
        }
    }
    pin
}
