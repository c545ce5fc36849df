//! What will happen, in order of time and then of asking.

use std::collections::BTreeMap;

use strait_clock::Time;

/// Events by time; those of one time in the order they were put in.
#[derive(Debug)]
pub struct EventQueue<E> {
    events: BTreeMap<(Time, u64), E>,
    count: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> EventQueue<E> {
        EventQueue { events: BTreeMap::new(), count: 0 }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event.
    pub fn push(&mut self, at: Time, event: E) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    /// When the next event is.
    #[must_use]
    pub fn next_at(&self) -> Option<Time> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next event if `wanted` says so of its time and itself.
    pub fn pop_if(&mut self, wanted: impl FnOnce(Time, &E) -> bool) -> Option<(Time, E)> {
        let entry = self.events.first_entry()?;
        let at = entry.key().0;
        wanted(at, entry.get()).then(|| (at, entry.remove()))
    }

    /// Events that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_decides_and_then_the_order_of_asking() {
        let mut queue = EventQueue::default();
        for (at, event) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b'), (9, 'e')] {
            queue.push(Time::from_millis(at), event);
        }
        assert_eq!(queue.pop_if(|_, event| *event == 'b'), None);
        assert_eq!(queue.len(), 5);
        let mut order = String::new();
        while let Some((_, event)) = queue.pop_if(|_, _| true) {
            order.push(event);
        }
        assert_eq!(order, "abcde");
        assert!(queue.is_empty() && queue.next_at().is_none());
    }
}
