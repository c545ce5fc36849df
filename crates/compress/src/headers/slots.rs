//! The flows of a bundle, each with the headers of its last packet.

use super::header::HeaderFields;

/// How many flows are remembered: as many as a byte names.
const SLOTS: usize = 256;
/// Places of a table by hash; four times the slots, so that few flows share one.
const PLACES: usize = 4 * SLOTS;

/// The last packet of every flow; both sides keep them alike.
#[derive(Debug)]
pub(super) struct Slots {
    headers: Vec<HeaderFields>,
    last: u8,
    /// The one that was made last.
    newest: u8,
}

impl Slots {
    pub(super) fn new() -> Slots {
        Slots { headers: Vec::with_capacity(SLOTS), last: 0, newest: 0 }
    }

    /// Forgets all flows.
    pub(super) fn clear(&mut self) {
        self.headers.clear();
        self.headers.push(HeaderFields::FIRST);
        (self.last, self.newest) = (0, 0);
    }

    /// The slot of the packet before.
    pub(super) const fn last(&self) -> u8 {
        self.last
    }

    pub(super) fn get(&self, slot: u8) -> Option<&HeaderFields> {
        self.headers.get(usize::from(slot))
    }

    /// Keeps a packet that was set against `slot`, and says where: there, or, as a flow of its own, where the oldest was.
    pub(super) fn keep(&mut self, slot: u8, mut header: HeaderFields) -> u8 {
        self.last = slot;
        let Some(before) = self.headers.get_mut(usize::from(slot)) else { return slot };
        header.follow(before);
        if header.is_of(before) {
            *before = header;
            return slot;
        }
        self.newest = self.newest.wrapping_add(1);
        self.last = self.newest;
        match self.headers.get_mut(usize::from(self.newest)) {
            Some(oldest) => *oldest = header,
            None => self.headers.push(header),
        }
        self.last
    }
}

/// Where the encoder may find a flow, by its hash: a guess that the slot itself confirms.
#[derive(Debug)]
pub(super) struct Guesses {
    flows: [u8; PLACES],
    hosts: [u8; PLACES],
}

impl Guesses {
    pub(super) const fn new() -> Guesses {
        Guesses { flows: [0; PLACES], hosts: [0; PLACES] }
    }

    pub(super) fn clear(&mut self) {
        self.flows.fill(0);
        self.hosts.fill(0);
    }

    /// The slot that a packet is best set against: its flow's, else one of the same two hosts, else that of the packet
    /// before.
    pub(super) fn find(&self, slots: &Slots, header: &HeaderFields) -> u8 {
        let fits = |guess: u8, so: fn(&HeaderFields, &HeaderFields) -> bool| {
            slots.get(guess).is_some_and(|slot| so(header, slot)).then_some(guess)
        };
        let last = slots.last;
        fits(last, HeaderFields::is_of).unwrap_or_else(|| {
            let (flow, hosts) = places(header);
            fits(self.flows[flow], HeaderFields::is_of)
                .or_else(|| fits(last, HeaderFields::is_between))
                .or_else(|| fits(self.hosts[hosts], HeaderFields::is_between))
                .unwrap_or(last)
        })
    }

    /// A packet's flow has this slot now.
    pub(super) fn note(&mut self, header: &HeaderFields, slot: u8) {
        let (flow, hosts) = places(header);
        self.flows[flow] = slot;
        self.hosts[hosts] = slot;
    }
}

/// The places of a flow and of its two hosts.
fn places(header: &HeaderFields) -> (usize, usize) {
    let [src, dst] = [header.src, header.dst].map(u128::from_be_bytes);
    let [src, dst] = [src, dst].map(|address| (address >> 64) as u64 ^ address as u64);
    let hosts = mixed(src ^ dst.rotate_left(32) ^ u64::from(header.kind.protocol));
    let [from, to] = header.ports.map(u64::from);
    let flow = mixed(hosts ^ from << 16 ^ to);
    (flow as usize % PLACES, hosts as usize % PLACES)
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014), its first half.
fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ value >> 27
}
