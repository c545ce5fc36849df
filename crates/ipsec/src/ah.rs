//! AH as it is made and checked (RFC 4302).

use strait_crypto::{ICV_MAX, MacKey};
use strait_wire::ah::{self, Align};
use strait_wire::ip;
use strait_wire::{Esn, Protocol, Spi};

use crate::layers::{Authentic, Inside, Unsealable};
use crate::sequence::{ReceivedNumbers, unsent};
use crate::{AhSpec, Carrier, Mode, Reason, SaSpec, SequenceNumbers};

/// The key with what the header looks like.
#[derive(Debug)]
struct Signer {
    spi: Spi,
    mac: MacKey,
    align: Align,
    length: SequenceNumbers,
}

impl Signer {
    fn new(spec: &AhSpec, whole: &SaSpec) -> Signer {
        // IPv6 headers come in multiples of 8 bytes (RFC 4302 section 3.3.3.2.1).
        let align = if is_v6(whole) { Align::Eight } else { spec.align };
        Signer { spi: spec.spi, mac: MacKey::new(&spec.integrity), align, length: whole.sequence }
    }

    fn icv_len(&self) -> usize {
        self.mac.integrity().icv_len()
    }

    fn len(&self) -> usize {
        ah::len(self.icv_len(), self.align)
    }
}

fn is_v6(spec: &SaSpec) -> bool {
    match (spec.carrier, spec.mode) {
        (Carrier::Ip { to, .. }, _) | (Carrier::Udp, Mode::Transport { to, .. }) => to.is_ipv6(),
        (Carrier::Udp, Mode::Tunnel) => false,
    }
}

/// The headers in front as the integrity check sees them.
struct Covered {
    bytes: [u8; ip::FRONT_MAX],
    len: usize,
}

impl Covered {
    fn of(packet: &[u8], front_len: usize) -> Option<Covered> {
        let mut covered = Covered { bytes: [0; ip::FRONT_MAX], len: front_len };
        let copy = covered.bytes.get_mut(..front_len)?;
        copy.copy_from_slice(packet.get(..front_len)?);
        ah::canonical(copy).ok()?;
        Some(covered)
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// AH of the sender.
#[derive(Debug)]
pub(crate) struct AhOut(Signer);

impl AhOut {
    pub(crate) fn new(spec: &AhSpec, whole: &SaSpec) -> AhOut {
        AhOut(Signer::new(spec, whole))
    }

    /// Bytes of the whole header.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes the header behind the front of `packet`, everything else of which is in its place; `next` is
    /// what follows.
    pub(crate) fn sign(
        &self,
        esn: Esn,
        packet: &mut [u8],
        front_len: usize,
        next: Protocol,
    ) -> Result<(), Unsealable> {
        let Signer { spi, mac, align, length } = &self.0;
        let front = Covered::of(packet, front_len).ok_or(Unsealable)?;
        let whole = packet.get_mut(front_len..).ok_or(Unsealable)?;
        let header = ah::Header { next, spi: *spi, seq: esn.low() };
        header.emit(whole, mac.integrity().icv_len(), *align).map_err(|_| Unsealable)?;
        let mut icv = [0; ICV_MAX];
        let icv = icv.get_mut(..self.0.icv_len()).ok_or(Unsealable)?;
        let (high, len) = unsent(esn, *length);
        mac.sign(&[front.bytes(), whole, high.get(..len).unwrap_or_default()], icv);
        let place = ah::HEADER_LEN..ah::HEADER_LEN + icv.len();
        whole.get_mut(place).ok_or(Unsealable)?.copy_from_slice(icv);
        Ok(())
    }
}

/// AH of the receiver.
#[derive(Debug)]
pub(crate) struct AhIn {
    signer: Signer,
    pub(crate) received: ReceivedNumbers,
}

impl AhIn {
    pub(crate) fn new(spec: &AhSpec, whole: &SaSpec) -> AhIn {
        AhIn { signer: Signer::new(spec, whole), received: ReceivedNumbers::new(whole.sequence) }
    }

    /// Checks the packet from its first byte; what follows the header is what is inside.
    pub(crate) fn open(&mut self, bytes: &[u8], inside: Inside) -> Result<Inside, Reason> {
        let Signer { spi, mac, length, .. } = &self.signer;
        let front = Covered::of(bytes, inside.at).ok_or(Reason::MalformedAh)?;
        let whole = bytes.get(inside.range()).ok_or(Reason::MalformedAh)?;
        let view = ah::View::parse(whole).map_err(|_| Reason::MalformedAh)?;
        let (header, icv_len) = (view.header(), self.signer.icv_len());
        if header.spi != *spi {
            return Err(Reason::UnknownSpi);
        }
        let (icv, padding) = view.icv(icv_len).map_err(|_| Reason::MalformedAh)?;
        let esn = self.received.peek(header.seq)?;
        let (high, len) = unsent(esn, *length);
        let covered = [
            front.bytes(),
            view.fixed,
            [0; ICV_MAX].get(..icv_len).unwrap_or_default(),
            padding,
            view.payload,
            high.get(..len).unwrap_or_default(),
        ];
        mac.verify(&covered, icv).map_err(|_| Reason::Forged)?;
        let proof = Authentic::checked();
        let newest = self.received.window.commit(esn, &proof);
        let at = inside.at + view.header_len();
        Ok(Inside { at, next: header.next, esn, newest, proof: Some(proof), ..inside })
    }
}

#[cfg(test)]
mod tests;
