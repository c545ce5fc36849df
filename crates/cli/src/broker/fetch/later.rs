//! Letters that stay at the broker, and when a process that waits looks at them again.

use std::collections::BTreeMap;

use strait_transfer::broker::message::ObjectName;

/// Visits before a letter is looked at again, at most: with a visit every 30 s, an hour.
const VISITS_MAX: u32 = 120;
/// Letters that are remembered; when there are more, all are looked at again.
const LETTERS_MAX: usize = 100_000;

/// Letters that were left, each with the visit at which it is due, and how many it waits for.
#[derive(Debug, Default)]
pub(crate) struct LettersLater {
    visit: u64,
    letters: BTreeMap<ObjectName, (u64, u32)>,
}

impl LettersLater {
    /// A visit begins.
    pub(crate) fn visit(&mut self) {
        self.visit += 1;
        if self.letters.len() > LETTERS_MAX {
            self.letters.clear();
        }
    }

    /// Whether a letter is to be looked at in this visit.
    pub(crate) fn is_due(&self, object: &ObjectName) -> bool {
        self.letters.get(object).is_none_or(|(due, _)| *due <= self.visit)
    }

    /// A letter is to wait for so many visits, if it was not seen before.
    pub(crate) fn first_wait(&mut self, object: ObjectName, visits: u32) {
        let due = self.visit + u64::from(visits);
        self.letters.entry(object).or_insert((due, 1));
    }

    /// A letter was left: each time it waits twice as long.
    pub(crate) fn put_off(&mut self, object: ObjectName) {
        let (due, wait) = self.letters.entry(object).or_insert((0, 1));
        *wait = (*wait * 2).min(VISITS_MAX);
        *due = self.visit + u64::from(*wait);
    }
}

#[cfg(test)]
mod tests {
    use strait_keying::PrivateKey;
    use strait_transfer::TransferId;

    use super::*;

    #[test]
    fn what_was_left_is_looked_at_again_ever_more_rarely_and_never_given_up() {
        let sender = PrivateKey::generate(&[1; 32]).public();
        let object = ObjectName { sender, id: TransferId::from_bytes([1; 16]) };
        let mut later = LettersLater::default();
        let mut looked = Vec::new();
        for visit in 1..500 {
            later.visit();
            if later.is_due(&object) {
                looked.push(visit);
                later.put_off(object);
            }
        }
        assert_eq!(looked, [1, 3, 7, 15, 31, 63, 127, 247, 367, 487]);
    }
}
