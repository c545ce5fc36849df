//! Names of nodes in headers: a name space, and an identifier in it.

use crate::Malformed;

/// Most bytes of a name.
pub const NAME_MAX: usize = 16;

/// A name space (draft-ietf-ipsec-skip-06 section 5, its NSIDs); those that SKIP has and are not here are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Nsid {
    /// No name.
    None = 0,
    /// An IPv4 address.
    Ipv4 = 1,
    /// An IPv6 address.
    Ipv6 = 3,
    /// The hash of a name. SKIP has MD5; here it is the first 16 bytes of SHA-256.
    NameHash = 4,
    /// The hash of a public key. SKIP has MD5; here it is the first 16 bytes of SHA-256.
    KeyHash = 8,
}

impl Nsid {
    /// Every name space.
    pub const ALL: [Nsid; 5] = [Nsid::None, Nsid::Ipv4, Nsid::Ipv6, Nsid::NameHash, Nsid::KeyHash];

    /// Bytes of a name in it.
    #[must_use]
    pub const fn wire_len(self) -> usize {
        match self {
            Nsid::None => 0,
            Nsid::Ipv4 => 4,
            Nsid::Ipv6 | Nsid::NameHash | Nsid::KeyHash => 16,
        }
    }

    const fn from_number(number: u8) -> Option<Nsid> {
        match number {
            0 => Some(Nsid::None),
            1 => Some(Nsid::Ipv4),
            3 => Some(Nsid::Ipv6),
            4 => Some(Nsid::NameHash),
            8 => Some(Nsid::KeyHash),
            _ => None,
        }
    }
}

/// A name of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    space: Nsid,
    /// Zeros behind the name.
    id: [u8; NAME_MAX],
}

impl Name {
    /// No name.
    pub const NONE: Name = Name { space: Nsid::None, id: [0; NAME_MAX] };

    /// The hash of a public key.
    #[must_use]
    pub const fn key_hash(id: [u8; 16]) -> Name {
        Name { space: Nsid::KeyHash, id }
    }

    /// The hash of a name.
    #[must_use]
    pub const fn name_hash(id: [u8; 16]) -> Name {
        Name { space: Nsid::NameHash, id }
    }

    /// An address.
    #[must_use]
    pub const fn address(address: core::net::IpAddr) -> Name {
        match address {
            core::net::IpAddr::V4(address) => {
                let [a, b, c, d] = address.octets();
                Name { space: Nsid::Ipv4, id: [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] }
            }
            core::net::IpAddr::V6(address) => Name { space: Nsid::Ipv6, id: address.octets() },
        }
    }

    /// Its name space.
    #[must_use]
    pub const fn space(&self) -> Nsid {
        self.space
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.id.get(..self.wire_len()).unwrap_or(&self.id)
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn wire_len(&self) -> usize {
        self.space.wire_len()
    }

    pub(super) const fn nsid(&self) -> u8 {
        self.space as u8
    }

    /// The name in the space `number` at the start of `bytes`, and what follows it.
    pub(super) fn split(number: u8, bytes: &[u8]) -> Result<(Name, &[u8]), Malformed> {
        let space = Nsid::from_number(number).ok_or(Malformed::new("name space", bytes))?;
        let malformed = Malformed::new("name", bytes);
        let (name, rest) = bytes.split_at_checked(space.wire_len()).ok_or(malformed)?;
        let mut id = [0; NAME_MAX];
        id.get_mut(..name.len()).ok_or(malformed)?.copy_from_slice(name);
        Ok((Name { space, id }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_a_space_of_its_own_or_refused() {
        let known: Vec<u8> = (0..16).filter(|number| Name::split(*number, &[7; 16]).is_ok()).collect();
        assert_eq!(known, Nsid::ALL.map(|space| space as u8));
        for space in Nsid::ALL {
            let (name, rest) = Name::split(space as u8, &[7; 20]).unwrap();
            assert_eq!(
                (name.space(), name.bytes().len(), rest.len()),
                (space, space.wire_len(), 20 - space.wire_len())
            );
            for short in 0..space.wire_len() {
                assert!(Name::split(space as u8, &[7; 20][..short]).is_err(), "{space:?} in {short} bytes");
            }
        }
    }

    #[test]
    fn addresses_are_their_octets() {
        let v4 = Name::address("192.0.2.1".parse().unwrap());
        assert_eq!((v4.space(), v4.bytes()), (Nsid::Ipv4, &[192, 0, 2, 1][..]));
        let v6 = Name::address("2001:db8::1".parse().unwrap());
        assert_eq!((v6.space(), v6.bytes()[0], v6.bytes()[15]), (Nsid::Ipv6, 0x20, 1));
        assert_eq!(Name::NONE.bytes(), &[] as &[u8]);
    }
}
