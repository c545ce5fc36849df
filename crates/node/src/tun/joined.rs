//! Packets for the host: several joined in one call, or one by one where the kernel does not take them so.

use std::io::{self, IoSlice};

use strait_clock::Time;
use strait_ipsec::SuperPacket;
use strait_wire::vnet;

use crate::fast_path::FastPath;
use crate::packet_errors::{ErrorMeaning, PacketCall, meaning};

/// Most pieces of one packet, and the header before them.
const PIECES: usize = 65;

/// Hands a packet to the host by `write`, or several that are joined: together, unless the kernel refuses that or has just done so.
///
/// # Errors
/// As `write` says of the first packet that it did not take. Where that is the first of all, no other is tried; else the others are
/// with the host, unless the device is gone.
pub(super) fn hand_over(
    (path, now): (&FastPath, impl Fn() -> Time),
    header: &vnet::Header,
    pieces: &[IoSlice<'_>],
    mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
) -> io::Result<()> {
    let kind = header.gso_type & !vnet::GSO_ECN;
    if kind == vnet::GSO_NONE {
        return together(header, pieces, &mut write);
    }
    if !path.is_open(kind, &now) {
        return one_by_one(header, pieces, write);
    }
    match together(header, pieces, &mut write) {
        Ok(()) => {
            path.worked(kind);
            Ok(())
        }
        Err(error) if meaning(PacketCall::WriteTunJoined, &error) == ErrorMeaning::OneByOne => {
            // What is refused in pieces as well says nothing of the way.
            one_by_one(header, pieces, write)?;
            path.refuse(kind, &error, now());
            Ok(())
        }
        refused => refused,
    }
}

fn together(
    header: &vnet::Header,
    pieces: &[IoSlice<'_>],
    write: &mut impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
) -> io::Result<()> {
    let mut first = [0; vnet::LEN];
    header.emit(&mut first);
    let mut slices = [IoSlice::new(&[]); PIECES];
    let (head, rest) = slices.split_at_mut(1);
    head.fill(IoSlice::new(&first));
    for (slice, piece) in rest.iter_mut().zip(pieces) {
        *slice = *piece;
    }
    let all = slices.get(..=pieces.len()).ok_or(io::ErrorKind::InvalidInput)?;
    write(all).map(|_| ())
}

/// Cuts joined packets, in memory of their own: that is the slow way.
fn one_by_one(
    header: &vnet::Header,
    pieces: &[IoSlice<'_>],
    mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
) -> io::Result<()> {
    let mut whole = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    let plain = [0; vnet::LEN];
    let joined = SuperPacket::new(&whole, header).map_err(|_| io::ErrorKind::InvalidInput)?;
    let (mut packet, mut result) = (Vec::new(), Ok(()));
    for index in 0..joined.count() {
        packet.resize(joined.len(index), 0);
        joined.write(index, &mut packet);
        if let Err(error) = write(&[IoSlice::new(&plain), IoSlice::new(&packet)]) {
            if index == 0 || meaning(PacketCall::WriteTun, &error) == ErrorMeaning::Lasting {
                return Err(error);
            }
            result = result.and(Err(error));
        }
    }
    result
}

#[cfg(test)]
mod tests;
