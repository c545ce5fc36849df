//! A table of classes that never grows: the smallest gives way, and what it had is counted among the others.

use std::collections::BTreeMap;

use super::{Figures, Key};

/// A class's place, as long as it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    index: usize,
    /// How many classes stood there before.
    generation: u32,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    generation: u32,
    figures: Figures,
}

/// Figures by class.
#[derive(Debug)]
pub(crate) struct Table {
    capacity: usize,
    index: BTreeMap<Key, usize>,
    entries: Vec<Entry>,
    others: Figures,
    /// How many classes had to give way.
    gone: u64,
}

impl Table {
    /// A table of at most `capacity` classes, at least one.
    pub(crate) fn new(capacity: usize) -> Table {
        let capacity = capacity.max(1);
        Table { capacity, index: BTreeMap::new(), entries: Vec::new(), others: Figures::default(), gone: 0 }
    }

    /// Where `key` stands; it gets a place if it has none.
    pub(crate) fn place(&mut self, key: Key) -> Place {
        if let Some(&index) = self.index.get(&key) {
            return Place { index, generation: self.entries.get(index).map_or(0, |entry| entry.generation) };
        }
        if self.entries.len() < self.capacity {
            let index = self.entries.len();
            self.entries.push(Entry { key, generation: 0, figures: Figures::default() });
            self.index.insert(key, index);
            return Place { index, generation: 0 };
        }
        self.replace(key)
    }

    /// Puts `key` where the class with the fewest bytes stood.
    fn replace(&mut self, key: Key) -> Place {
        let smallest = self.entries.iter_mut().enumerate().min_by_key(|(_, entry)| entry.figures.bytes);
        // There is at least one.
        let Some((index, entry)) = smallest else { return Place { index: 0, generation: 0 } };
        self.others.merge(&core::mem::take(&mut entry.figures));
        self.gone += 1;
        self.index.remove(&entry.key);
        self.index.insert(key, index);
        entry.key = key;
        entry.generation = entry.generation.wrapping_add(1);
        Place { index, generation: entry.generation }
    }

    /// Whether the class that was given this place stands there still.
    pub(crate) fn stands(&self, place: Place) -> bool {
        self.entries.get(place.index).is_some_and(|entry| entry.generation == place.generation)
    }

    /// The figures of the class with this place, or those of the others when it had to give way.
    pub(crate) fn at(&mut self, place: Place) -> &mut Figures {
        match self.entries.get_mut(place.index) {
            Some(entry) if entry.generation == place.generation => &mut entry.figures,
            _ => &mut self.others,
        }
    }

    /// The classes, that with the most bytes first.
    pub(crate) fn sorted(&self) -> Vec<(Key, &Figures)> {
        let mut classes: Vec<_> = self.entries.iter().map(|entry| (entry.key, &entry.figures)).collect();
        classes.sort_by_key(|(key, figures)| (core::cmp::Reverse(figures.bytes), *key));
        classes
    }

    /// How many classes had to give way, and what they had together.
    pub(crate) const fn others(&self) -> (u64, &Figures) {
        (self.gone, &self.others)
    }
}
