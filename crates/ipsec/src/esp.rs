//! ESP as it is sealed and opened (RFC 4303) with AEAD suites.

use strait_crypto::{Aead, Exhausted, ICV_LEN};
use strait_wire::esp::{self, HEADER_LEN};
use strait_wire::{Esn, Protocol, SeqLow, Spi};

use crate::replay::Refused;
use crate::{InboundSa, IvMode, OutboundSa, Reason, SequenceNumbers};

/// Proof that a packet passed its integrity check; only [`open`] makes one.
#[derive(Debug)]
pub(crate) struct Authentic(());

#[cfg(test)]
impl Authentic {
    pub(crate) const fn for_test() -> Authentic {
        Authentic(())
    }
}

/// ESP needs its trailer to end on a multiple of 4 bytes (RFC 4303 section 2.4); AEAD suites ask no more.
const ALIGN: usize = 4;

/// Bytes of a whole ESP packet around a payload of `payload` bytes.
pub(crate) const fn sealed_len(iv: IvMode, payload: usize) -> usize {
    HEADER_LEN + iv.wire_len() + payload + esp::pad_len(payload, ALIGN) + 2 + ICV_LEN
}

/// The largest payload whose ESP packet takes at most `room` bytes.
pub(crate) const fn payload_room(iv: IvMode, room: usize) -> usize {
    let around = HEADER_LEN + iv.wire_len() + ICV_LEN;
    let Some(text) = room.checked_sub(around) else { return 0 };
    (text / ALIGN * ALIGN).saturating_sub(2)
}

/// Where the payload starts in an ESP packet.
pub(crate) const fn payload_at(iv: IvMode) -> usize {
    HEADER_LEN + iv.wire_len()
}

/// Makes an ESP packet in place: `packet` is [`sealed_len`] long and holds the payload at
/// [`payload_at`]; everything else is written here.
pub(crate) fn seal(
    sa: &mut OutboundSa,
    packet: &mut [u8],
    payload: usize,
    next: Protocol,
) -> Result<(), Exhausted> {
    let nonce = sa.nonces.next()?;
    let esn = Esn(nonce.value());
    if sa.sequence == SequenceNumbers::Bits32 && esn.high() != 0 {
        // A number that was sent must not be sent again (RFC 4303 section 3.3.3).
        return Err(Exhausted);
    }
    let header = esp::Header { spi: sa.spi, seq: esn.low() };
    let text_at = payload_at(sa.iv);
    let parts = packet.split_at_mut_checked(text_at).and_then(|(front, rest)| {
        let text = rest.len().checked_sub(ICV_LEN)?;
        let (text, icv) = rest.split_at_mut_checked(text)?;
        Some((front, text, icv))
    });
    let Some((front, text, icv)) = parts else { return Err(Exhausted) };
    // The lengths come from `sealed_len`, so none of these can fail.
    let _ = header.emit(front);
    if let Some(iv) = front.get_mut(HEADER_LEN..HEADER_LEN + sa.iv.wire_len())
        && !iv.is_empty()
    {
        iv.copy_from_slice(&esn.0.to_be_bytes());
    }
    if let Some(trailer) = text.get_mut(payload..) {
        let _ = esp::emit_trailer(trailer, next);
    }
    match sa.key.seal(nonce, Aad::new(sa.spi, esn, sa.sequence).bytes(), text) {
        Ok(tag) => icv.copy_from_slice(&tag),
        Err(_) => return Err(Exhausted),
    }
    Ok(())
}

/// What [`open`] found: where the payload lies in the packet, and what it is.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) esn: Esn,
    pub(crate) at: usize,
    pub(crate) len: usize,
    pub(crate) next: Protocol,
    pub(crate) proof: Authentic,
}

/// Checks and decrypts an ESP packet in place. Looks at the replay window, never moves it.
pub(crate) fn open(sa: &InboundSa, packet: &mut [u8], low: SeqLow) -> Result<Opened, Reason> {
    let at = payload_at(sa.iv);
    if packet.len() < at + 2 + ICV_LEN {
        return Err(Reason::MalformedEsp);
    }
    let esn = match sa.sequence {
        SequenceNumbers::Bits32 => Esn(u64::from(low.0)),
        SequenceNumbers::Bits64 => sa.window.infer(low),
    };
    sa.window.peek(esn).map_err(|refused| match refused {
        Refused::TooOld => Reason::TooOld,
        Refused::Duplicate => Reason::Replayed,
    })?;
    let (front, sealed) = packet.split_at_mut_checked(at).ok_or(Reason::MalformedEsp)?;
    let iv = match sa.iv {
        IvMode::Implicit => esn.0,
        IvMode::Explicit => {
            let bytes = front.get(HEADER_LEN..).and_then(|iv| iv.try_into().ok());
            u64::from_be_bytes(bytes.ok_or(Reason::MalformedEsp)?)
        }
    };
    let aad = Aad::new(sa.spi, esn, sa.sequence);
    let text = sa.key.open(iv, aad.bytes(), sealed).map_err(|_| Reason::Forged)?;
    let (payload, next) = esp::parse_trailer(text).map_err(|_| Reason::MalformedEsp)?;
    Ok(Opened { esn, at, len: payload.len(), next, proof: Authentic(()) })
}

/// What the integrity check covers beside the text: SPI and sequence number, whole, in 8 or 12 bytes
/// (RFC 4106 section 5, RFC 7634 section 2.1).
struct Aad {
    bytes: [u8; 12],
    len: usize,
}

impl Aad {
    fn new(spi: Spi, esn: Esn, sequence: SequenceNumbers) -> Aad {
        let [a, b, c, d] = spi.0.to_be_bytes();
        let [e, f, g, h, i, j, k, l] = esn.0.to_be_bytes();
        match sequence {
            SequenceNumbers::Bits32 => Aad { bytes: [a, b, c, d, i, j, k, l, 0, 0, 0, 0], len: 8 },
            SequenceNumbers::Bits64 => Aad { bytes: [a, b, c, d, e, f, g, h, i, j, k, l], len: 12 },
        }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }
}

#[cfg(test)]
mod vectors;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Payloads, PeerId, SaSpec};
    use strait_crypto::{KeyMaterial, Suite};

    fn spec(suite: Suite, iv: IvMode, sequence: SequenceNumbers) -> SaSpec {
        let bytes: Vec<u8> = (0..suite.key_material_len()).map(|n| u8::try_from(n).unwrap()).collect();
        SaSpec {
            spi: Spi(0x0400_0001),
            peer: PeerId(0),
            key: KeyMaterial::new(suite, &bytes).unwrap(),
            iv,
            sequence,
            payloads: Payloads::Standard,
        }
    }

    #[test]
    fn a_sealed_packet_opens_once_and_only_whole() {
        let modes = [
            (IvMode::Implicit, SequenceNumbers::Bits64),
            (IvMode::Explicit, SequenceNumbers::Bits64),
            (IvMode::Implicit, SequenceNumbers::Bits32),
            (IvMode::Explicit, SequenceNumbers::Bits32),
        ];
        for (suite, (iv, sequence)) in
            Suite::ALL.into_iter().flat_map(|suite| modes.map(|mode| (suite, mode)))
        {
            let spec = spec(suite, iv, sequence);
            let (mut out, mut inn) = (OutboundSa::new(&spec), InboundSa::new(&spec));
            for len in [0, 1, 2, 3, 20, 1400, 60_000] {
                let mut packet = vec![0x5a; sealed_len(iv, len)];
                seal(&mut out, &mut packet, len, Protocol::IPIP).unwrap();
                let room = |less| payload_room(iv, packet.len() - less);
                assert!((len == 0 || len > room(4)) && len <= room(0), "{len}");
                let header = esp::Header::parse(&packet).unwrap().0;
                let mut tampered = packet.clone();
                *tampered.last_mut().unwrap() ^= 1;
                assert_eq!(open(&inn, &mut tampered, header.seq).unwrap_err(), Reason::Forged);
                let opened = open(&inn, &mut packet, header.seq).unwrap();
                assert_eq!((opened.len, opened.next), (len, Protocol::IPIP));
                assert!(packet[opened.at..opened.at + len].iter().all(|byte| *byte == 0x5a));
                inn.window.commit(opened.esn, &opened.proof);
                assert_eq!(open(&inn, &mut packet, header.seq).unwrap_err(), Reason::Replayed);
            }
            for len in 0..payload_at(iv) + 18 {
                assert_eq!(open(&inn, &mut vec![0; len], SeqLow(99)).unwrap_err(), Reason::MalformedEsp);
            }
        }
    }

    #[test]
    fn the_last_32_bit_number_is_the_last() {
        let spec = spec(Suite::Aes128Gcm, IvMode::Explicit, SequenceNumbers::Bits32);
        let mut out = OutboundSa::new(&spec);
        out.nonces = strait_crypto::NonceCounter::starting_at(u64::from(u32::MAX));
        let mut packet = vec![0; sealed_len(IvMode::Explicit, 20)];
        seal(&mut out, &mut packet, 20, Protocol::IPIP).unwrap();
        assert_eq!(esp::Header::parse(&packet).unwrap().0.seq, SeqLow(u32::MAX));
        let mut inn = InboundSa::new(&spec);
        let opened = open(&inn, &mut packet, SeqLow(u32::MAX)).unwrap();
        inn.window.commit(opened.esn, &opened.proof);
        // The number 0 of a next round is never taken for 2^32.
        assert_eq!(open(&inn, &mut packet, SeqLow(0)).unwrap_err(), Reason::TooOld);
        for _ in 0..3 {
            assert_eq!(seal(&mut out, &mut packet, 20, Protocol::IPIP).unwrap_err(), Exhausted);
        }
    }
}
