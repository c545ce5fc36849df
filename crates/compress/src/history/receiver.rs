//! The receiver's end: what is kept, and packets made again from it.

use strait_wire::history::{LoneHead, PLACES, Place};

use super::payload::{KeptPayloads, PayloadCoder};
use super::{CONTEXT_BYTES, HistoryError, MemoryShare, PAYLOAD_MAX, UnitNumber};
use crate::headers::PacketHeaders;

/// A packet that was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoneDecoded {
    /// Bytes of the packet.
    pub len: usize,
    /// Whether it is kept, so that its sender is to get a receipt.
    pub kept: bool,
}

/// What is at a place.
#[derive(Debug, Default)]
struct KeptPacket {
    /// Of which unit.
    of: Option<(UnitNumber, PacketHeaders)>,
    payload: Vec<u8>,
}

/// What one peer asked to be kept.
#[derive(Debug)]
pub struct LoneReceiver {
    contexts: Vec<Option<Box<[KeptPacket; PLACES]>>>,
    payloads: PayloadCoder,
    share: MemoryShare,
    /// Contexts that take memory.
    count: usize,
}

/// The places of one context, as a unit with this number sees them.
struct Seen<'a> {
    places: Option<&'a [KeptPacket; PLACES]>,
    by: UnitNumber,
}

impl Seen<'_> {
    /// What is at a place; nothing where a newer unit has replaced it.
    fn get(&self, place: Place) -> Option<(&PacketHeaders, &[u8])> {
        let kept = self.places?.get(place.index())?;
        let (number, headers) = kept.of.as_ref()?;
        (*number < self.by).then_some((headers, kept.payload.as_slice()))
    }
}

impl KeptPayloads for Seen<'_> {
    fn payload(&self, place: Place) -> Option<&[u8]> {
        self.get(place).map(|(_, payload)| payload)
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        Place::all().filter(|place| self.get(*place).is_some())
    }
}

impl LoneReceiver {
    /// Keeps so many contexts, 256 at most. Memory is taken as contexts come: 24 KiB each at most.
    #[must_use]
    pub fn new(contexts: u16) -> LoneReceiver {
        let contexts = usize::from(contexts).min(1 << u8::BITS);
        LoneReceiver {
            contexts: (0..contexts).map(|_| None).collect(),
            payloads: PayloadCoder::default(),
            share: MemoryShare::default(),
            count: 0,
        }
    }

    /// Takes its memory from this share.
    #[must_use]
    pub fn within(self, share: MemoryShare) -> LoneReceiver {
        LoneReceiver { share, ..self }
    }

    /// Puts the packet of a unit into the front of `out`.
    ///
    /// # Errors
    /// [`HistoryError`]; nothing is kept then, and the bytes of `out` mean nothing.
    pub fn decode(
        &mut self,
        unit: &[u8],
        number: UnitNumber,
        out: &mut [u8],
    ) -> Result<LoneDecoded, HistoryError> {
        let (head, mut rest) = LoneHead::parse(unit).map_err(|_| HistoryError::Malformed)?;
        let most = self.contexts.len();
        let over = HistoryError::OverBudget { most };
        let context = self.contexts.get_mut(usize::from(head.context)).ok_or(over)?;
        let seen = Seen { places: context.as_deref(), by: number };
        let before = match head.against {
            None => None,
            Some(place) => Some(seen.get(place).ok_or(HistoryError::Gone)?.0),
        };
        let headers = PacketHeaders::decode(before, &mut rest)?;
        let (at, len) = (headers.len(), headers.payload_len());
        if len > PAYLOAD_MAX {
            return Err(HistoryError::TooLong { cap: PAYLOAD_MAX });
        }
        let cap = out.len();
        let packet = out.get_mut(..at + len).ok_or(HistoryError::TooLong { cap })?;
        let payload = packet.get_mut(at..).ok_or(HistoryError::Malformed)?;
        if head.coded {
            self.payloads.expand(&seen, rest, payload)?;
        } else if rest.len() == len {
            payload.copy_from_slice(rest);
        } else {
            return Err(HistoryError::Malformed);
        }
        headers.write(packet)?;
        if context.is_none() && head.keep.is_some() && self.share.resize((self.count + 1) * CONTEXT_BYTES) {
            *context = Some(Box::default());
            self.count += 1;
        }
        let kept = head.keep.zip(context.as_mut()).is_some_and(|(place, places)| {
            places.get_mut(place.index()).is_some_and(|kept| kept.replace(number, headers, packet))
        });
        Ok(LoneDecoded { len: at + len, kept })
    }

    /// Bytes of payloads that are kept.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.contexts.iter().flatten().flat_map(|places| places.iter()).map(|kept| kept.payload.len()).sum()
    }
}

impl KeptPacket {
    /// Keeps a packet in place of an older one; false where the one here is newer.
    fn replace(&mut self, number: UnitNumber, headers: PacketHeaders, packet: &[u8]) -> bool {
        if self.of.as_ref().is_some_and(|(before, _)| *before >= number) {
            return false;
        }
        self.of = Some((number, headers));
        super::keep_payload(&mut self.payload, packet.get(headers.len()..).unwrap_or_default());
        true
    }
}
