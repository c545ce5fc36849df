//! The payload of a lone unit: as a difference from one kept payload, or compressed behind several.
//!
//! ```text
//! difference: 0x10 | place, then pairs to the end: bytes that are equal, bytes that differ, these; what is left is equal
//! RTP:        0x30 | place, packets ahead and marker, steps of time a packet, what is behind the header of RTP
//! LZS:        0x20, places (2, the bit of place 1 the lowest), LZS behind the payloads of these places, the highest place last
//! ```

mod rtp;

use strait_wire::history::Place;

use super::{HistoryError, PAYLOAD_MAX};
use crate::lzs::{self, Lzs};

const DIFFERENCE: u8 = 0x10;
const LZS: u8 = 0x20;
const RTP: u8 = 0x30;
/// The farthest that an LZS code reaches (RFC 2395 section 2.2).
const WINDOW: usize = 2_047;
/// As many equal bytes end a run of differing ones: fewer take as much as the two lengths of a pair.
const EQUAL_MIN: usize = 3;

/// Kept payloads by place.
pub(super) trait KeptPayloads {
    /// The payload at this place, if a unit may refer to it.
    fn payload(&self, place: Place) -> Option<&[u8]>;
    /// All such places, the newest first.
    fn places(&self) -> impl Iterator<Item = Place>;
}

/// What codes payloads; it allocates nothing once it has seen payloads as long as those to come.
#[derive(Default)]
pub(super) struct PayloadCoder {
    lzs: Lzs,
    window: Vec<u8>,
    coded: Vec<u8>,
    best: Vec<u8>,
}

impl core::fmt::Debug for PayloadCoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PayloadCoder").finish_non_exhaustive()
    }
}

/// Which places a coded payload refers to: a bit each, that of place 1 the lowest.
pub(super) type PlaceSet = u16;

const fn bit(place: Place) -> PlaceSet {
    1 << place.index()
}

impl PayloadCoder {
    /// The shortest way to say `payload`, and the places it refers to; `None` where that is no shorter than itself.
    pub(super) fn code(&mut self, kept: &impl KeptPayloads, payload: &[u8]) -> Option<(&[u8], PlaceSet)> {
        let mut best = None;
        self.best.clear();
        if let Some(place) = nearest(kept, payload)
            && let Some(before) = kept.payload(place)
        {
            self.coded.clear();
            self.coded.push(DIFFERENCE | place.number());
            difference(before, payload, &mut self.coded);
            if self.coded.len() < payload.len() {
                core::mem::swap(&mut self.best, &mut self.coded);
                best = Some(bit(place));
            }
        }
        if let Some(set) = self.behind(kept, payload)
            && self.coded.len() < best.map_or(payload.len(), |_| self.best.len())
        {
            core::mem::swap(&mut self.best, &mut self.coded);
            best = Some(set);
        }
        if let Some(place) = self.rtp(kept, payload)
            && self.coded.len() < best.map_or(payload.len(), |_| self.best.len())
        {
            core::mem::swap(&mut self.best, &mut self.coded);
            best = Some(bit(place));
        }
        best.map(|set| (self.best.as_slice(), set))
    }

    /// The payload of RTP with its header set against that of a kept payload, which it follows; `None` where it is no such payload.
    pub(super) fn code_rtp(&mut self, kept: &impl KeptPayloads, payload: &[u8]) -> Option<(&[u8], PlaceSet)> {
        self.best.clear();
        let place = self.rtp(kept, payload)?;
        core::mem::swap(&mut self.best, &mut self.coded);
        Some((self.best.as_slice(), bit(place)))
    }

    fn rtp(&mut self, kept: &impl KeptPayloads, payload: &[u8]) -> Option<Place> {
        let place = kept.places().next()?;
        self.coded.clear();
        self.coded.push(RTP | place.number());
        rtp::code(kept.payload(place)?, payload, &mut self.coded)?;
        Some(place)
    }

    /// Compresses `payload` behind as many kept ones as the window reaches.
    fn behind(&mut self, kept: &impl KeptPayloads, payload: &[u8]) -> Option<PlaceSet> {
        let (mut set, mut room) = (0, WINDOW);
        for place in kept.places() {
            let len = kept.payload(place).map_or(0, <[u8]>::len);
            if len > 0 && len <= room {
                set |= bit(place);
                room -= len;
            }
        }
        fill(&mut self.window, kept, set)?;
        let start = self.window.len();
        self.window.extend_from_slice(payload);
        let [high, low] = set.to_be_bytes();
        self.coded.clear();
        self.coded.extend_from_slice(&[LZS, high, low]);
        let head = self.coded.len();
        self.coded.resize(payload.len().max(head), 0);
        let room = self.coded.get_mut(head..)?;
        let len = self.lzs.compress_behind(start, &self.window, room)?;
        self.coded.truncate(head + len);
        Some(set)
    }

    /// Puts the payload that `coded` says into `payload`, which is as long as it is.
    pub(super) fn expand(
        &mut self,
        kept: &impl KeptPayloads,
        coded: &[u8],
        payload: &mut [u8],
    ) -> Result<(), HistoryError> {
        let (first, rest) = coded.split_first().ok_or(HistoryError::Malformed)?;
        if *first == LZS {
            let (set, rest) = rest.split_first_chunk().ok_or(HistoryError::Malformed)?;
            return self.expand_behind(kept, PlaceSet::from_be_bytes(*set), rest, payload);
        }
        let place = Place::new(first & 0x0f).ok_or(HistoryError::Malformed)?;
        let before = || kept.payload(place).ok_or(HistoryError::Gone);
        match first & 0xf0 {
            DIFFERENCE => undo_difference(before()?, rest, payload),
            RTP => rtp::expand(before()?, rest, payload),
            _ => None,
        }
        .ok_or(HistoryError::Malformed)
    }

    fn expand_behind(
        &mut self,
        kept: &impl KeptPayloads,
        set: PlaceSet,
        coded: &[u8],
        payload: &mut [u8],
    ) -> Result<(), HistoryError> {
        fill(&mut self.window, kept, set).ok_or(HistoryError::Gone)?;
        let start = self.window.len();
        if start > WINDOW || payload.len() > PAYLOAD_MAX {
            return Err(HistoryError::Malformed);
        }
        self.window.resize(start + payload.len(), 0);
        let len = lzs::expand_behind(start, coded, &mut self.window).map_err(|_| HistoryError::Malformed)?;
        let expanded = self.window.get(start..len).filter(|expanded| expanded.len() == payload.len());
        payload.copy_from_slice(expanded.ok_or(HistoryError::Malformed)?);
        Ok(())
    }
}

/// Puts the payloads of these places one after another; `None` where one of them is not kept, or they are too long together.
fn fill(window: &mut Vec<u8>, kept: &impl KeptPayloads, set: PlaceSet) -> Option<()> {
    window.clear();
    for place in Place::all().filter(|place| set & bit(*place) != 0) {
        let payload = kept.payload(place)?;
        if window.len() + payload.len() > WINDOW {
            return None;
        }
        window.extend_from_slice(payload);
    }
    // A bit that no place has.
    (set >> strait_wire::history::PLACES == 0).then_some(())
}

/// The kept payload that differs least at the same offsets; the newer of two alike.
fn nearest(kept: &impl KeptPayloads, payload: &[u8]) -> Option<Place> {
    let differing = |place: &Place| {
        let before = kept.payload(*place).unwrap_or_default();
        let beyond = payload.len().saturating_sub(before.len());
        beyond + payload.iter().zip(before).filter(|(new, old)| new != old).count()
    };
    kept.places().min_by_key(differing)
}

/// Writes a length: 7 bits a byte, the lowest first, the top bit where more follow.
fn put_len(out: &mut Vec<u8>, mut len: usize) {
    while len >= 0x80 {
        out.push(0x80 | (len & 0x7f) as u8);
        len >>= 7;
    }
    out.push(len as u8);
}

/// Reads one, of two bytes at most: payloads have no more than [`PAYLOAD_MAX`].
fn take_len(coded: &mut &[u8]) -> Option<usize> {
    match *coded.split_off_first()? {
        low @ 0..0x80 => Some(usize::from(low)),
        low => {
            let high = *coded.split_off_first().filter(|high| **high < 0x80)?;
            Some(usize::from(high) << 7 | usize::from(low & 0x7f))
        }
    }
}

fn difference(before: &[u8], payload: &[u8], out: &mut Vec<u8>) {
    let equal_at = |at: usize| payload.get(at).is_some() && payload.get(at) == before.get(at);
    let mut at = 0;
    while at < payload.len() {
        let from = at;
        while equal_at(at) {
            at += 1;
        }
        if at == payload.len() {
            break;
        }
        put_len(out, at - from);
        let from = at;
        let run = |at: usize| (at..at + EQUAL_MIN).all(equal_at);
        // What is equal to the end takes nothing more than its length.
        while at < payload.len() && !run(at) {
            at += 1;
        }
        put_len(out, at - from);
        out.extend_from_slice(payload.get(from..at).unwrap_or_default());
    }
}

fn undo_difference(before: &[u8], mut coded: &[u8], payload: &mut [u8]) -> Option<()> {
    let mut at = 0;
    while !coded.is_empty() {
        let equal = take_len(&mut coded)?;
        payload.get_mut(at..at + equal)?.copy_from_slice(before.get(at..at + equal)?);
        at += equal;
        let differing = take_len(&mut coded).filter(|len| *len > 0)?;
        payload.get_mut(at..at + differing)?.copy_from_slice(coded.split_off(..differing)?);
        at += differing;
    }
    let rest = payload.get_mut(at..).filter(|rest| !rest.is_empty());
    rest.map_or(Some(()), |rest| {
        rest.copy_from_slice(before.get(at..at + rest.len())?);
        Some(())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Payloads(Vec<Vec<u8>>);

    impl KeptPayloads for Payloads {
        fn payload(&self, place: Place) -> Option<&[u8]> {
            self.0.get(place.index()).map(Vec::as_slice)
        }

        fn places(&self) -> impl Iterator<Item = Place> {
            Place::all().take(self.0.len())
        }
    }

    #[test]
    fn a_counter_takes_five_bytes() {
        let kept = Payloads(vec![b"temperature=20;count=0001".to_vec()]);
        let mut coder = PayloadCoder::default();
        let (coded, set) = coder.code(&kept, b"temperature=20;count=0002").unwrap();
        assert_eq!((coded, set), (&[DIFFERENCE | 1, 24, 1, b'2'][..], 1));
    }

    #[test]
    fn what_repeats_at_another_offset_is_found() {
        let kept = Payloads(vec![b"GET /instruments/thermometer/north HTTP/1.1".to_vec()]);
        let payload = b"x GET /instruments/thermometer/north HTTP/1.1 y";
        let mut coder = PayloadCoder::default();
        let (coded, set) = coder.code(&kept, payload).unwrap();
        assert!(coded[0] == LZS && coded.len() < 16, "{coded:?}");
        assert_eq!(set, 1);
    }

    proptest! {
        #[test]
        fn round_trip(kept in proptest::collection::vec(proptest::collection::vec(0..4_u8, 0..300), 0..15),
                      payload in proptest::collection::vec(0..4_u8, 0..400), wrong: Vec<u8>) {
            let kept = Payloads(kept);
            let mut coder = PayloadCoder::default();
            if let Some((coded, _)) = coder.code(&kept, &payload) {
                let coded = coded.to_vec();
                prop_assert!(coded.len() < payload.len());
                let mut back = vec![9; payload.len()];
                prop_assert_eq!(coder.expand(&kept, &coded, &mut back), Ok(()));
                prop_assert_eq!(back, payload);
                for len in 0..coded.len() {
                    let _ = coder.expand(&kept, &coded[..len], &mut vec![0; 400]);
                }
            }
            let _ = coder.expand(&kept, &wrong, &mut [0; 100]);
        }
    }
}
