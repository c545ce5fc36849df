//! A table of classes that never grows: the smallest gives way, and what it had is counted among the others.

use std::collections::BTreeMap;

use super::{ClassFigures, ClassKey};

/// A class's place, as long as it stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FigurePlace {
    index: usize,
    /// How many classes stood there before.
    generation: u32,
}

#[derive(Debug)]
struct FigureEntry {
    key: ClassKey,
    generation: u32,
    figures: ClassFigures,
}

/// Figures by class.
#[derive(Debug)]
pub(crate) struct FigureTable {
    capacity: usize,
    index: BTreeMap<ClassKey, usize>,
    entries: Vec<FigureEntry>,
    others: ClassFigures,
    /// How many classes had to give way.
    gone: u64,
}

impl FigureTable {
    /// A table of at most `capacity` classes, at least one.
    pub(crate) fn new(capacity: usize) -> FigureTable {
        let capacity = capacity.max(1);
        FigureTable {
            capacity,
            index: BTreeMap::new(),
            entries: Vec::new(),
            others: ClassFigures::default(),
            gone: 0,
        }
    }

    /// Where `key` stands; it gets a place if it has none.
    pub(crate) fn place(&mut self, key: ClassKey) -> FigurePlace {
        if let Some(&index) = self.index.get(&key) {
            return FigurePlace {
                index,
                generation: self.entries.get(index).map_or(0, |entry| entry.generation),
            };
        }
        if self.entries.len() < self.capacity {
            let index = self.entries.len();
            self.entries.push(FigureEntry { key, generation: 0, figures: ClassFigures::default() });
            self.index.insert(key, index);
            return FigurePlace { index, generation: 0 };
        }
        self.replace(key)
    }

    /// Puts `key` where the class with the fewest bytes stood.
    fn replace(&mut self, key: ClassKey) -> FigurePlace {
        let smallest = self.entries.iter_mut().enumerate().min_by_key(|(_, entry)| entry.figures.bytes);
        // There is at least one.
        let Some((index, entry)) = smallest else { return FigurePlace { index: 0, generation: 0 } };
        self.others.merge(&core::mem::take(&mut entry.figures));
        self.gone += 1;
        self.index.remove(&entry.key);
        self.index.insert(key, index);
        entry.key = key;
        entry.generation = entry.generation.wrapping_add(1);
        FigurePlace { index, generation: entry.generation }
    }

    /// Whether the class that was given this place stands there still.
    pub(crate) fn stands(&self, place: FigurePlace) -> bool {
        self.entries.get(place.index).is_some_and(|entry| entry.generation == place.generation)
    }

    /// The figures of the class with this place, or those of the others when it had to give way.
    pub(crate) fn at(&mut self, place: FigurePlace) -> &mut ClassFigures {
        match self.entries.get_mut(place.index) {
            Some(entry) if entry.generation == place.generation => &mut entry.figures,
            _ => &mut self.others,
        }
    }

    /// The classes, that with the most bytes first.
    pub(crate) fn sorted(&self) -> Vec<(ClassKey, &ClassFigures)> {
        let mut classes: Vec<_> = self.entries.iter().map(|entry| (entry.key, &entry.figures)).collect();
        classes.sort_by_key(|(key, figures)| (core::cmp::Reverse(figures.bytes), *key));
        classes
    }

    /// How many classes had to give way, and what they had together.
    pub(crate) const fn others(&self) -> (u64, &ClassFigures) {
        (self.gone, &self.others)
    }
}
