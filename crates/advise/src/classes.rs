//! Kinds of traffic: by protocol, by service, by pair of hosts. Tables of them never grow beyond their size.

mod figures;
mod key;
mod service;
mod table;

use strait_wire::Flow;

use figures::End;
pub(crate) use figures::{Figures, Sample, place_of};
pub(crate) use key::{FileId, Key};
pub(crate) use table::{Place, Table};

/// Classes of one kind at most; a network has more hosts, but a person does not read of more.
const CLASSES: usize = 1_024;
/// Flows whose classes need not be looked up again, a power of two.
const REMEMBERED: usize = 256;

/// Where a packet's figures are added, in each of the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) protocol: Place,
    pub(crate) service: Place,
    pub(crate) pair: Place,
}

/// A flow whose classes were looked up.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    flow: Flow,
    file: Option<FileId>,
    places: Places,
}

/// All tables, and the whole.
#[derive(Debug)]
pub(crate) struct Classes {
    pub(crate) whole: Figures,
    pub(crate) protocols: Table,
    pub(crate) services: Table,
    pub(crate) pairs: Table,
    remembered: Box<[Option<Remembered>]>,
}

impl Classes {
    pub(crate) fn new() -> Classes {
        let [protocols, services, pairs] = [(); 3].map(|()| Table::new(CLASSES));
        let remembered = vec![None; REMEMBERED].into_boxed_slice();
        Classes { whole: Figures::default(), protocols, services, pairs, remembered }
    }

    /// The classes of a packet of `flow`, which is of a file's or of hosts' own.
    pub(crate) fn places(&mut self, flow: &Flow, file: Option<FileId>) -> Places {
        let slot = usize::from(flow.src_port ^ flow.dst_port) % REMEMBERED;
        if let Some(Some(known)) = self.remembered.get(slot)
            && known.flow == *flow
            && known.file == file
            && self.are_standing(known.places)
        {
            return known.places;
        }
        let places = Places {
            protocol: self.protocols.place(Key::Protocol(flow.protocol)),
            service: self.services.place(file.map_or_else(|| service::of(flow), Key::File)),
            // A file's packets have no hosts.
            pair: self.pairs.place(file.map_or_else(|| Key::pair(flow), Key::File)),
        };
        if let Some(slot) = self.remembered.get_mut(slot) {
            *slot = Some(Remembered { flow: *flow, file, places });
        }
        places
    }

    /// Adds to a packet's figures in all classes that it is in.
    pub(crate) fn add(&mut self, places: Places, mut add: impl FnMut(&mut Figures)) {
        add(&mut self.whole);
        add(self.protocols.at(places.protocol));
        add(self.services.at(places.service));
        add(self.pairs.at(places.pair));
    }

    /// A packet with data, which is of a pair's turns when the other end spoke before.
    pub(crate) fn turn(&mut self, places: Places, flow: &Flow) {
        let end = if flow.src <= flow.dst { End::Lower } else { End::Higher };
        let pair = self.pairs.at(places.pair);
        pair.turns += u64::from(pair.last.replace(end).is_some_and(|last| last != end));
    }

    fn are_standing(&self, places: Places) -> bool {
        self.protocols.stands(places.protocol)
            && self.services.stands(places.service)
            && self.pairs.stands(places.pair)
    }
}

#[cfg(test)]
mod tests;
