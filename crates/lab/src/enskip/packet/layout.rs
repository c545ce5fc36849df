//! Where what is in a packet: the SKIP header, AH, ESP, the packet inside.

use super::{PacketError, SkipSettings};
use crate::enskip::algorithm::Crypt;
use crate::enskip::keys::{self, PACKET_KEY};

/// Bytes of the file in a packet: with 3DES and MD5 it then fills the 1,500 bytes of an Ethernet frame, its outer IP header
/// included.
pub(in crate::enskip) const PAYLOAD: usize = 1342;
/// Bytes of the longest packet without the outer IP header.
pub(in crate::enskip) const PACKET_MAX: usize = 1480;
/// Headers of IP and TCP inside.
pub(super) const INNER: usize = 40;
/// A SKIP header: 4 bytes of version, NSIDs and next header, the hour, 4 of algorithms, the wrapped key, and two key IDs of NSID 8, the
/// MD5 of a public key, which the paper's hosts had.
pub(in crate::enskip) const HEADER: usize = 4 + 4 + 4 + PACKET_KEY + 2 * 16;
/// An AH header with 96 bits (RFC 4302 section 2); RFC 1826's with MD5's 128 bits is as long.
pub(super) const AH: usize = 12 + ICV;
pub(super) const ICV: usize = 12;
/// SPI of ESP and AH under SKIP.
pub(super) const SPI: [u8; 4] = 1_u32.to_be_bytes();
/// IP protocols: IP in IP, ESP, AH.
const IPIP: u8 = 4;
const ESP: u8 = 50;
const AUTHENTICATED: u8 = 51;
/// The hour since 1995 that all packets are of: no measurement takes longer than one.
pub(super) const HOUR: u32 = 20_000;
/// What follows AH, or the SKIP header where there is none.
pub(super) const fn next(settings: &SkipSettings) -> u8 {
    match settings.combination.crypt {
        Crypt::Null => IPIP,
        Crypt::Blocks(_) | Crypt::Rc4 | Crypt::Suite(_) => ESP,
    }
}

/// The header with a wrapped key.
pub(super) fn header(settings: &SkipSettings, wrapped: &[u8; PACKET_KEY]) -> [u8; HEADER] {
    let follows = if settings.combination.md5 { AUTHENTICATED } else { next(settings) };
    let kij = keys::KIJ_ALGORITHMS.iter().position(|(_, cipher)| *cipher == settings.kij);
    let mac = u8::from(settings.combination.md5);
    let mut header = [0; HEADER];
    // Version 1, NSID 8 at both ends.
    header[..4].copy_from_slice(&[0x10, 8, 8, follows]);
    header[4..8].copy_from_slice(&HOUR.to_be_bytes());
    header[8..12].copy_from_slice(&[
        kij.map_or(0, |place| place as u8 + 1),
        settings.combination.number(),
        mac,
        0,
    ]);
    header[12..12 + PACKET_KEY].copy_from_slice(wrapped);
    header[12 + PACKET_KEY..].copy_from_slice(b"the sender's ID.the receiver's I");
    header
}

/// Headers of IP and TCP: lengths and numbers are right, checksums are not looked at.
pub(super) fn inner(number: u64, payload: usize) -> [u8; INNER] {
    let mut inner = [0; INNER];
    inner[0] = 0x45;
    inner[2..4].copy_from_slice(&((INNER + payload) as u16).to_be_bytes());
    inner[4..6].copy_from_slice(&(number as u16).to_be_bytes());
    (inner[8], inner[9]) = (64, 6);
    inner[24..28].copy_from_slice(&(number as u32).to_be_bytes());
    inner[32] = 0x50;
    inner
}

/// Appends an SPI, an IV and text in whole blocks, padded as ESP pads (RFC 4303 section 2.4); gives where the text begins.
pub(super) fn put_text(packet: &mut Vec<u8>, iv: &[u8], parts: [&[u8]; 2], block: usize) -> usize {
    packet.extend_from_slice(&SPI);
    packet.extend_from_slice(iv);
    let start = packet.len();
    parts.iter().for_each(|part| packet.extend_from_slice(part));
    let padding = (block - (packet.len() - start + 2) % block) % block;
    packet.extend((1..=padding).map(|byte| byte as u8));
    packet.extend_from_slice(&[padding as u8, IPIP]);
    start
}

/// The IV and the text of what [`put_text`] appended at `start`.
pub(super) fn text_of(packet: &mut [u8], start: usize, iv: usize) -> Result<(&[u8], &mut [u8]), PacketError> {
    let esp = packet.get_mut(start + SPI.len()..).ok_or(PacketError::Short)?;
    let (iv, text) = esp.split_at_mut_checked(iv).ok_or(PacketError::Short)?;
    Ok((iv, text))
}

/// What is between the inner headers and the padding.
pub(super) fn payload_of(text: &[u8]) -> Result<&[u8], PacketError> {
    let (padding, _) = text
        .split_last_chunk::<2>()
        .map(|(_, [padding, next])| (*padding, *next))
        .ok_or(PacketError::Short)?;
    let end = text.len().checked_sub(2 + usize::from(padding)).ok_or(PacketError::Short)?;
    text.get(INNER..end).ok_or(PacketError::Short)
}
