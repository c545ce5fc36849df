//! A context as its sender has it: what is said to be at its places.

use strait_clock::Time;
use strait_wire::history::{PLACES, Place};

use super::UnitNumber;
use super::payload::{KeptPayloads, PlaceSet};
use crate::headers::{ContextKey, PacketHeaders};

/// Units refer to so many places, those with the newest packets; the others may be given away.
const REFERRED: usize = 8;
/// Of them, so many without a payload at most, such as acknowledgements of TCP: payloads are coded against others only.
const EMPTY: usize = 2;
/// Of packets without a payload, one in so many units is kept: its receipt takes two bytes, as much as the headers of the next ones grow.
const EMPTY_EVERY: u64 = 4;
/// A place is given to another packet no earlier than so many units of the context after one that referred to it: paths do not
/// reorder sparse packets by more.
const REORDERED: u64 = 8;
/// Packets of a context that may wait for a receipt: with them, [`REFERRED`] places stay, and three to give away.
const PENDING: usize = 4;

/// What is at a place, as far as the sender knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PlaceState {
    /// Nothing that counts.
    #[default]
    Empty,
    /// A unit with a packet for it left then; whether it arrived is not known.
    Pending(UnitNumber, Time),
    /// The packet of this unit.
    Acknowledged(UnitNumber),
}

/// A place; its payload is empty where none may refer to it.
#[derive(Debug, Default)]
struct SenderPlace {
    state: PlaceState,
    headers: Option<PacketHeaders>,
    payload: Vec<u8>,
    /// Whether payloads of other flows may refer to it.
    shared: bool,
    /// Units of the context that had left when one last referred to it.
    referred: u64,
}

/// One context.
#[derive(Debug)]
pub(super) struct SenderContext {
    pub(super) key: ContextKey,
    /// When a packet of it was last seen, in packets of all contexts.
    pub(super) used: u64,
    /// Packets seen, up to the second.
    pub(super) seen: u8,
    /// Packets in a row that no receipt came for.
    pub(super) missed: u8,
    units: u64,
    places: [SenderPlace; PLACES],
}

impl SenderContext {
    pub(super) fn new(key: ContextKey) -> SenderContext {
        SenderContext { key, used: 0, seen: 0, missed: 0, units: 0, places: Default::default() }
    }

    /// Becomes the context of another flow.
    pub(super) fn begin(&mut self, key: ContextKey) {
        (self.key, self.seen, self.missed) = (key, 0, 0);
        self.forget(|_| true);
    }

    /// Forgets what is at the places in these states.
    pub(super) fn forget(&mut self, which: impl Fn(PlaceState) -> bool) {
        for place in &mut self.places {
            if which(place.state) {
                place.state = PlaceState::Empty;
            }
        }
    }

    /// Whether a packet without a payload is to be kept now.
    pub(super) fn keeps_empty(&self) -> bool {
        self.units.is_multiple_of(EMPTY_EVERY) || !self.has_acknowledged()
    }

    /// Whether units may refer to anything.
    pub(super) fn has_acknowledged(&self) -> bool {
        self.places.iter().any(|place| matches!(place.state, PlaceState::Acknowledged(_)))
    }

    fn get(&self, place: Place) -> Option<&SenderPlace> {
        self.places.get(place.index())
    }

    pub(super) fn headers(&self, place: Place) -> Option<&PacketHeaders> {
        self.get(place)?.headers.as_ref()
    }

    /// The acknowledged places, the newest packet first.
    fn acknowledged(&self) -> impl Iterator<Item = Place> {
        let mut newest = [None; PLACES];
        let mut count = 0;
        for place in Place::all() {
            if let Some(PlaceState::Acknowledged(number)) = self.get(place).map(|place| place.state)
                && let Some(room) = newest.get_mut(count)
            {
                *room = Some((number, place));
                count += 1;
            }
        }
        newest.sort_unstable_by(|a, b| b.cmp(a));
        newest.into_iter().flatten().map(|(_, place)| place)
    }

    /// The places that units may refer to, the newest packet first.
    pub(super) fn referable(&self) -> impl Iterator<Item = Place> {
        let mut empty = 0;
        let some = move |place: &Place| {
            let is_empty = self.get(*place).is_none_or(|place| place.payload.is_empty());
            empty += usize::from(is_empty);
            !is_empty || empty <= EMPTY
        };
        self.acknowledged().filter(some).take(REFERRED)
    }

    /// What the payload of a packet of this flow may refer to: payloads of the same flow, and those that flows share if it is `shared`.
    pub(super) const fn payloads(&self, flow: ContextKey, shared: bool) -> FlowPayloads<'_> {
        FlowPayloads { context: self, flow, shared }
    }

    /// The place for another packet, if there is one to give away; of packets that left before `stale`, no receipt is waited for.
    pub(super) fn vacant(&self, stale: Time) -> Option<Place> {
        let mut pending = 0;
        let mut oldest: Option<(UnitNumber, Time, Place)> = None;
        let mut empty = None;
        for place in Place::all() {
            match self.get(place)?.state {
                PlaceState::Empty => empty = empty.or(Some(place)),
                PlaceState::Pending(number, at) => {
                    pending += 1;
                    if oldest.is_none_or(|(before, ..)| number < before) {
                        oldest = Some((number, at, place));
                    }
                }
                PlaceState::Acknowledged(_) => {}
            }
        }
        if pending >= PENDING {
            return oldest.filter(|(_, at, _)| *at <= stale).map(|(.., place)| place);
        }
        let left =
            |place: &Place| self.get(*place).is_some_and(|place| place.referred + REORDERED <= self.units);
        let mut referable = 0;
        self.referable().for_each(|place| referable |= 1 << place.index());
        let beyond = |place: &Place| referable & 1 << place.index() == 0;
        empty.or_else(|| self.acknowledged().filter(beyond).filter(left).last())
    }

    /// Whether a packet at this place waits for its receipt.
    pub(super) fn is_pending(&self, place: Place) -> bool {
        self.get(place).is_some_and(|place| matches!(place.state, PlaceState::Pending(..)))
    }

    /// A unit left that referred to these places.
    pub(super) fn note_unit(&mut self, referred: PlaceSet) {
        self.units += 1;
        for place in Place::all().filter(|place| referred & 1 << place.index() != 0) {
            if let Some(place) = self.places.get_mut(place.index()) {
                place.referred = self.units;
            }
        }
    }

    /// A unit left with a packet for this place.
    pub(super) fn keep(
        &mut self,
        place: Place,
        (number, now): (UnitNumber, Time),
        (headers, shared): (PacketHeaders, bool),
        payload: &[u8],
    ) {
        let Some(place) = self.places.get_mut(place.index()) else { return };
        place.state = PlaceState::Pending(number, now);
        place.headers = Some(headers);
        place.shared = shared;
        super::keep_payload(&mut place.payload, payload);
    }

    /// The unit with this number was kept at this place.
    pub(super) fn acknowledge(&mut self, place: Place, number: UnitNumber) {
        let Some(place) = self.places.get_mut(place.index()) else { return };
        if matches!(place.state, PlaceState::Pending(pending, _) if pending == number) {
            place.state = PlaceState::Acknowledged(number);
            self.missed = 0;
        }
    }

    /// No receipt is waited for any more of the packet of this unit at this place.
    pub(super) fn give_up(&mut self, place: Place, number: UnitNumber) {
        let Some(place) = self.places.get_mut(place.index()) else { return };
        if matches!(place.state, PlaceState::Pending(pending, _) if pending == number) {
            place.state = PlaceState::Empty;
        }
    }
}

/// The payloads of a context that those of one flow may refer to.
pub(super) struct FlowPayloads<'a> {
    context: &'a SenderContext,
    flow: ContextKey,
    shared: bool,
}

impl KeptPayloads for FlowPayloads<'_> {
    fn payload(&self, place: Place) -> Option<&[u8]> {
        let place = self.context.get(place)?;
        let same = place.headers.is_some_and(|headers| headers.flow() == self.flow);
        let may = same || self.shared && place.shared;
        (may && matches!(place.state, PlaceState::Acknowledged(_))).then_some(place.payload.as_slice())
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        self.context.referable().filter(|place| self.payload(*place).is_some())
    }
}
