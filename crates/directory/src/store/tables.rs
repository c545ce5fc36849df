//! What is in the store's tables, and how one certificate changes them.

use std::net::IpAddr;

use ipnet::IpNet;
use redb::{ReadableTable, Table, TableDefinition, WriteTransaction};
use strait_keying::PublicKey;
use strait_keying::directory::Certificate;
use strait_wire::sessionless::Name;

use super::{Refusal, RefusalReason, StoreError, Taken};

pub(super) const CERTIFICATES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("certificates");
pub(super) const NAMES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("names");
pub(super) const NETWORKS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("networks");

/// Bytes before a certificate: its serial number, its last second.
pub(super) const HEAD: usize = 16;
/// Bytes of a hash.
pub(super) const HASH: usize = 16;

/// The tables of a transaction.
pub(super) struct Tables<'t> {
    certificates: Table<'t, &'static [u8], &'static [u8]>,
    names: Table<'t, &'static [u8], &'static [u8]>,
    networks: Table<'t, &'static [u8], &'static [u8]>,
    authority: PublicKey,
}

impl<'t> Tables<'t> {
    pub(super) fn open(
        transaction: &'t WriteTransaction,
        authority: PublicKey,
    ) -> Result<Tables<'t>, StoreError> {
        Ok(Tables {
            certificates: transaction.open_table(CERTIFICATES)?,
            names: transaction.open_table(NAMES)?,
            networks: transaction.open_table(NETWORKS)?,
            authority,
        })
    }

    pub(super) fn insert(&mut self, certificate: &Certificate) -> Result<Taken, StoreError> {
        let hash = certificate.key_name();
        let hash = hash.bytes();
        let before = self.certificates.get(hash)?.map(|found| found.value().to_vec());
        if let Some(before) = &before {
            if let Some(older) = not_newer(before, certificate) {
                return Ok(older);
            }
            // Names and networks that the new one no longer has.
            if let Ok(before) =
                Certificate::from_bytes(before.get(HEAD..).unwrap_or_default(), &self.authority)
            {
                self.forget(&before)?;
            }
        }
        let serial = certificate.serial().to_be_bytes();
        let value = [&serial[..], &certificate.valid().1.to_be_bytes(), certificate.as_bytes()].concat();
        self.certificates.insert(hash, value.as_slice())?;
        let owner = [hash, &serial[..]].concat();
        point(&mut self.names, certificate.text_name().bytes(), &owner)?;
        for net in &certificate.terms().networks {
            point(&mut self.networks, &network_key(net), &owner)?;
        }
        Ok(Taken::New)
    }

    pub(super) fn remove(&mut self, certificate: &Certificate) -> Result<(), StoreError> {
        let hash = certificate.key_name();
        self.certificates.remove(hash.bytes())?;
        self.forget(certificate)
    }

    /// Removes what leads to a certificate beside its key.
    fn forget(&mut self, certificate: &Certificate) -> Result<(), StoreError> {
        let hash = certificate.key_name();
        unpoint(&mut self.names, certificate.text_name().bytes(), hash.bytes())?;
        let networks = certificate.terms().networks.iter();
        networks.map(network_key).try_for_each(|net| unpoint(&mut self.networks, &net, hash.bytes()))
    }
}

/// Has an entry lead to its owner, unless it leads to one with a higher serial number.
fn point(table: &mut Table<'_, &[u8], &[u8]>, key: &[u8], owner: &[u8]) -> Result<(), StoreError> {
    let serial = |owner: &[u8]| owner.get(HASH..).map(<[u8]>::to_vec);
    let newer = table.get(key)?.is_some_and(|found| serial(found.value()) > serial(owner));
    if !newer {
        table.insert(key, owner)?;
    }
    Ok(())
}

/// Removes an entry that leads to the key with this hash.
fn unpoint(table: &mut Table<'_, &[u8], &[u8]>, key: &[u8], hash: &[u8]) -> Result<(), StoreError> {
    let is_its = table.get(key)?.is_some_and(|found| found.value().get(..HASH) == Some(hash));
    if is_its {
        table.remove(key)?;
    }
    Ok(())
}

/// What is said of a certificate that is not newer than the one in `kept` for the same key.
pub(super) fn not_newer(kept: &[u8], certificate: &Certificate) -> Option<Taken> {
    let (serial, _) = head(kept)?;
    if kept.get(HEAD..) == Some(certificate.as_bytes()) {
        return Some(Taken::Known);
    }
    let words = || format!("certificate {serial} of this key, which is kept, is not older");
    (serial >= certificate.serial()).then(|| Taken::Refused(Refusal::new(RefusalReason::Older, words())))
}

pub(super) fn head(value: &[u8]) -> Option<(u64, u64)> {
    let (serial, rest) = value.split_first_chunk::<8>()?;
    let (until, _) = rest.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*serial), u64::from_be_bytes(*until)))
}

pub(super) fn address(name: &Name) -> IpAddr {
    match <[u8; 4]>::try_from(name.bytes()) {
        Ok(octets) => octets.into(),
        Err(_) => <[u8; 16]>::try_from(name.bytes()).unwrap_or_default().into(),
    }
}

/// The owner of the longest network that has `address`.
pub(super) fn owner_of(
    networks: &impl ReadableTable<&'static [u8], &'static [u8]>,
    address: IpAddr,
) -> Result<Option<Vec<u8>>, StoreError> {
    let most = if address.is_ipv4() { 32 } else { 128 };
    for len in (0..=most).rev() {
        let Ok(net) = IpNet::new(address, len) else { continue };
        if let Some(owner) = networks.get(network_key(&net.trunc()).as_slice())? {
            return Ok(owner.value().get(..HASH).map(<[u8]>::to_vec));
        }
    }
    Ok(None)
}

fn network_key(net: &IpNet) -> Vec<u8> {
    let mut key = vec![if net.addr().is_ipv4() { 4 } else { 6 }, net.prefix_len()];
    match net.addr() {
        IpAddr::V4(address) => key.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => key.extend_from_slice(&address.octets()),
    }
    key
}
