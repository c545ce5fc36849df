//! ESP as it is sealed and opened (RFC 4303), with AEAD suites and with a cipher and an integrity
//! algorithm apart.

mod separate;

use strait_crypto::{FreshNonce, Key};
use strait_wire::esp::{self, HEADER_LEN};
use strait_wire::{Esn, Protocol, Spi};

use crate::layers::{Authentic, Inside, Sizes, Unsealable};
use crate::sequence::ReceivedNumbers;
use crate::{EspKeys, EspSpec, IvMode, Reason, SequenceNumbers};

use separate::Separate;

/// ESP needs its trailer to end on a multiple of 4 bytes (RFC 4303 section 2.4); AEAD suites ask no more.
const ALIGN: usize = 4;

/// A scheduled key with what surrounds its use.
#[derive(Debug)]
enum Scheduled {
    Aead(Key, IvMode),
    Separate(Box<Separate>),
}

impl Scheduled {
    fn new(keys: &EspKeys) -> Scheduled {
        match keys {
            EspKeys::Aead { key, iv } => Scheduled::Aead(Key::new(key), *iv),
            EspKeys::Separate { cipher, integrity, seed } => {
                Scheduled::Separate(Box::new(Separate::new(cipher, integrity.as_ref(), *seed)))
            }
        }
    }

    fn sizes(&self) -> Sizes {
        match self {
            Scheduled::Aead(key, iv) => {
                Sizes { iv: iv.wire_len(), icv: key.suite().icv_len(), align: ALIGN - 1 }
            }
            Scheduled::Separate(keys) => {
                Sizes { iv: keys.iv_len(), icv: keys.icv_len(), align: keys.block_len().max(ALIGN) - 1 }
            }
        }
    }
}

/// ESP of the sender.
#[derive(Debug)]
pub(crate) struct EspOut {
    spi: Spi,
    keys: Scheduled,
    pub(crate) sizes: Sizes,
}

impl EspOut {
    pub(crate) fn new(spec: &EspSpec) -> EspOut {
        let keys = Scheduled::new(&spec.keys);
        EspOut { spi: spec.spi, sizes: keys.sizes(), keys }
    }

    /// Makes an ESP packet in place: `packet` is [`Sizes::sealed`] long and holds the payload at
    /// [`Sizes::front`]; everything else is written here.
    pub(crate) fn seal(
        &self,
        nonce: FreshNonce,
        length: SequenceNumbers,
        packet: &mut [u8],
        payload: usize,
        next: Protocol,
    ) -> Result<(), Unsealable> {
        let esn = Esn(nonce.value());
        // The lengths come from `sealed`, so none of these can fail.
        let _ = esp::Header { spi: self.spi, seq: esn.low() }.emit(packet);
        let text_end = packet.len().checked_sub(self.sizes.icv).ok_or(Unsealable)?;
        if let Some(trailer) = packet.get_mut(self.sizes.front() + payload..text_end) {
            let _ = esp::emit_trailer(trailer, next);
        }
        match &self.keys {
            Scheduled::Aead(key, iv) => seal(key, *iv, self.spi, nonce, length, packet),
            Scheduled::Separate(keys) => keys.seal(esn, length, packet),
        }
    }
}

/// The rest of sealing with an AEAD suite.
fn seal(
    key: &Key,
    iv: IvMode,
    spi: Spi,
    nonce: FreshNonce,
    length: SequenceNumbers,
    packet: &mut [u8],
) -> Result<(), Unsealable> {
    let esn = Esn(nonce.value());
    let (front, sealed) = packet.split_at_mut_checked(HEADER_LEN + iv.wire_len()).ok_or(Unsealable)?;
    let text = sealed.len().checked_sub(key.suite().icv_len()).ok_or(Unsealable)?;
    let (text, icv) = sealed.split_at_mut_checked(text).ok_or(Unsealable)?;
    if iv == IvMode::Explicit
        && let Some(iv) = front.get_mut(HEADER_LEN..)
    {
        iv.copy_from_slice(&esn.0.to_be_bytes());
    }
    let tag = key.seal(nonce, Aad::new(spi, esn, length).bytes(), text).map_err(|_| Unsealable)?;
    icv.copy_from_slice(&tag);
    Ok(())
}

/// ESP of the receiver.
#[derive(Debug)]
pub(crate) struct EspIn {
    spi: Spi,
    keys: Scheduled,
    sizes: Sizes,
    pub(crate) received: ReceivedNumbers,
}

impl EspIn {
    pub(crate) fn new(spec: &EspSpec, length: SequenceNumbers) -> EspIn {
        let keys = Scheduled::new(&spec.keys);
        EspIn { spi: spec.spi, sizes: keys.sizes(), keys, received: ReceivedNumbers::new(length) }
    }

    /// Checks and decrypts the ESP packet `inside`, in place; the window moves for an authentic one only.
    pub(crate) fn open(&mut self, bytes: &mut [u8], inside: Inside) -> Result<Inside, Reason> {
        let packet = bytes.get_mut(inside.range()).ok_or(Reason::MalformedEsp)?;
        let header = esp::Header::parse(packet).map_err(|_| Reason::MalformedEsp)?.0;
        if header.spi != self.spi {
            return Err(Reason::UnknownSpi);
        }
        let front = self.sizes.front();
        if packet.len() < front + 2 + self.sizes.icv {
            return Err(Reason::MalformedEsp);
        }
        let esn = self.received.peek(header.seq)?;
        let (text, checked) = match &self.keys {
            Scheduled::Aead(key, iv) => open(key, *iv, self.spi, esn, self.received.length, packet)?,
            Scheduled::Separate(keys) => keys.open(esn, self.received.length, packet)?,
        };
        let proof = checked.or(inside.proof).ok_or(Reason::Unprotected)?;
        let newest = self.received.window.commit(esn, &proof);
        let (payload, next) = esp::parse_trailer(text).map_err(|_| Reason::MalformedEsp)?;
        let at = inside.at + front;
        Ok(Inside { at, end: at + payload.len(), next, esn, newest, proof: Some(proof) })
    }
}

/// The rest of opening with an AEAD suite: the text, which nothing but its own check vouches for.
fn open<'a>(
    key: &Key,
    iv: IvMode,
    spi: Spi,
    esn: Esn,
    length: SequenceNumbers,
    packet: &'a mut [u8],
) -> Result<(&'a [u8], Option<Authentic>), Reason> {
    let (front, sealed) =
        packet.split_at_mut_checked(HEADER_LEN + iv.wire_len()).ok_or(Reason::MalformedEsp)?;
    let iv = match iv {
        IvMode::Implicit => esn.0,
        IvMode::Explicit => {
            let bytes = front.get(HEADER_LEN..).and_then(|iv| iv.try_into().ok());
            u64::from_be_bytes(bytes.ok_or(Reason::MalformedEsp)?)
        }
    };
    let aad = Aad::new(spi, esn, length);
    let text = key.open(iv, aad.bytes(), sealed).map_err(|_| Reason::Forged)?;
    Ok((text, Some(Authentic::checked())))
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
mod tests;
