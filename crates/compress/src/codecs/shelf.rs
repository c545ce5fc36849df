//! A few contexts, kept by what they were made for.

/// At most `PLACES` contexts; the one unused for longest makes room for a new one.
pub(super) struct Shelf<K, C, const PLACES: usize> {
    /// Most recently used first.
    contexts: Vec<(K, C)>,
}

impl<K: PartialEq, C, const PLACES: usize> Shelf<K, C, PLACES> {
    /// The context made for `key`, from the shelf or from `make`.
    pub(super) fn get(&mut self, key: K, make: impl FnOnce() -> C) -> &mut C {
        if let Some(place) = self.contexts.iter().position(|(made_for, _)| *made_for == key) {
            self.contexts[..=place].rotate_right(1);
        } else {
            self.contexts.truncate(PLACES - 1);
            self.contexts.insert(0, (key, make()));
        }
        &mut self.contexts[0].1
    }
}

impl<K, C, const PLACES: usize> Default for Shelf<K, C, PLACES> {
    fn default() -> Shelf<K, C, PLACES> {
        Shelf { contexts: Vec::with_capacity(PLACES) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let mut shelf = Shelf::<u8, u8, 3>::default();
        let mut made = Vec::new();
        for key in [1, 2, 3, 1, 4, 1, 3, 2] {
            let context = *shelf.get(key, || {
                made.push(key);
                key
            });
            assert_eq!(context, key);
        }
        // 4 pushes out 2, the return of 2 pushes out 4.
        assert_eq!(made, [1, 2, 3, 4, 2]);
        assert_eq!(shelf.contexts.len(), 3);
    }
}
