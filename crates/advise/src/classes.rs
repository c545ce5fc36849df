//! Kinds of traffic: by protocol, by service, by pair of hosts. Tables of them never grow beyond their size.

mod figures;
mod key;
mod table;

use strait_wire::{Flow, Service};

use figures::HostEnd;
pub(crate) use figures::{ClassFigures, CompressionSample, place_of};
pub(crate) use key::{ClassKey, FileId};
pub(crate) use table::{FigurePlace, FigureTable};

/// Classes of one kind at most; a network has more hosts, but a person does not read of more.
const CLASSES: usize = 1_024;
/// Flows whose classes need not be looked up again, a power of two.
const REMEMBERED: usize = 256;

/// Where a packet's figures are added, in each of the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FigurePlaces {
    pub(crate) protocol: FigurePlace,
    pub(crate) service: FigurePlace,
    pub(crate) pair: FigurePlace,
}

/// A flow whose classes were looked up.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    flow: Flow,
    file: Option<FileId>,
    places: FigurePlaces,
}

/// All tables, and the whole.
#[derive(Debug)]
pub(crate) struct Classes {
    pub(crate) whole: ClassFigures,
    pub(crate) protocols: FigureTable,
    pub(crate) services: FigureTable,
    pub(crate) pairs: FigureTable,
    remembered: Box<[Option<Remembered>]>,
}

impl Classes {
    pub(crate) fn new() -> Classes {
        let [protocols, services, pairs] = [(); 3].map(|()| FigureTable::new(CLASSES));
        let remembered = vec![None; REMEMBERED].into_boxed_slice();
        Classes { whole: ClassFigures::default(), protocols, services, pairs, remembered }
    }

    /// The classes of a packet of `flow`, which is of a file's or of hosts' own.
    pub(crate) fn places(&mut self, flow: &Flow, file: Option<FileId>) -> FigurePlaces {
        let slot = usize::from(flow.src_port ^ flow.dst_port) % REMEMBERED;
        if let Some(Some(known)) = self.remembered.get(slot)
            && known.flow == *flow
            && known.file == file
            && self.are_standing(known.places)
        {
            return known.places;
        }
        let places = FigurePlaces {
            protocol: self.protocols.place(ClassKey::Protocol(flow.protocol)),
            service: self
                .services
                .place(file.map_or_else(|| ClassKey::Service(Service::of(flow)), ClassKey::File)),
            // A file's packets have no hosts.
            pair: self.pairs.place(file.map_or_else(|| ClassKey::pair(flow), ClassKey::File)),
        };
        if let Some(slot) = self.remembered.get_mut(slot) {
            *slot = Some(Remembered { flow: *flow, file, places });
        }
        places
    }

    /// Adds to a packet's figures in all classes that it is in.
    pub(crate) fn add(&mut self, places: FigurePlaces, mut add: impl FnMut(&mut ClassFigures)) {
        add(&mut self.whole);
        add(self.protocols.at(places.protocol));
        add(self.services.at(places.service));
        add(self.pairs.at(places.pair));
    }

    /// A packet with data, which is of a pair's turns when the other end spoke before.
    pub(crate) fn turn(&mut self, places: FigurePlaces, flow: &Flow) {
        let end = if flow.src <= flow.dst { HostEnd::Lower } else { HostEnd::Higher };
        let pair = self.pairs.at(places.pair);
        pair.turns += u64::from(pair.last.replace(end).is_some_and(|last| last != end));
    }

    fn are_standing(&self, places: FigurePlaces) -> bool {
        self.protocols.stands(places.protocol)
            && self.services.stands(places.service)
            && self.pairs.stands(places.pair)
    }
}

#[cfg(test)]
mod tests;
