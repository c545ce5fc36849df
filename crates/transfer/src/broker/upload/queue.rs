//! A queue between two threads, bounded by bytes.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What waits in it at most, for each item besides its own bytes: many small objects are few bytes.
const ITEM: usize = 512;

/// The queue was closed at one of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueClosed;

/// What a wait gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Popped {
    /// Something.
    Items,
    /// Nothing for so long.
    Nothing,
    /// There is nothing and nothing will come.
    End,
}

/// Items in order.
pub(super) struct Queue<T> {
    inside: Mutex<Inside<T>>,
    changed: Condvar,
    max: usize,
}

struct Inside<T> {
    items: VecDeque<T>,
    weight: usize,
    ended: bool,
    closed: bool,
}

impl<T> Queue<T> {
    /// At most so many bytes wait in it, and one item more.
    pub(super) fn new(max: usize) -> Queue<T> {
        let inside = Inside { items: VecDeque::new(), weight: 0, ended: false, closed: false };
        Queue { inside: Mutex::new(inside), changed: Condvar::new(), max }
    }

    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item of so many bytes when there is room for it.
    pub(super) fn push(&self, item: T, bytes: usize) -> Result<(), QueueClosed> {
        let mut inside = self.lock();
        while inside.weight >= self.max && !inside.closed {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        if inside.closed {
            return Err(QueueClosed);
        }
        inside.weight += bytes + ITEM;
        inside.items.push_back(item);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes all that is there, waiting for something at most so long.
    pub(super) fn pop_all(&self, to: &mut Vec<T>, wait: Duration) -> Popped {
        let mut inside = self.lock();
        while inside.items.is_empty() {
            if inside.ended || inside.closed {
                return Popped::End;
            }
            let waited = self.changed.wait_timeout(inside, wait).unwrap_or_else(PoisonError::into_inner);
            inside = waited.0;
            if waited.1.timed_out() && inside.items.is_empty() && !inside.ended && !inside.closed {
                return Popped::Nothing;
            }
        }
        to.extend(inside.items.drain(..));
        inside.weight = 0;
        self.changed.notify_all();
        Popped::Items
    }

    /// Nothing more will be added.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Nothing is added or taken any more.
    pub(super) fn close(&self) {
        let mut inside = self.lock();
        inside.closed = true;
        inside.items.clear();
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn items_come_in_order_and_a_full_queue_makes_its_writer_wait() {
        let queue = Queue::new(4 * ITEM);
        thread::scope(|scope| {
            scope.spawn(|| {
                (0..1000).for_each(|number| queue.push(number, 100).unwrap());
                queue.end();
            });
            let mut all = Vec::new();
            loop {
                let before = all.len();
                match queue.pop_all(&mut all, LONG) {
                    Popped::Items => assert!(all.len() - before <= 5),
                    Popped::Nothing => panic!("nothing came"),
                    Popped::End => break,
                }
            }
            assert!(all.into_iter().eq(0..1000));
        });
    }

    #[test]
    fn a_closed_queue_frees_both_ends() {
        let (full, empty) = (Queue::new(1), Queue::<u8>::new(1));
        full.push(1, 1).unwrap();
        thread::scope(|scope| {
            let push = scope.spawn(|| full.push(2, 1));
            let pop = scope.spawn(|| empty.pop_all(&mut Vec::new(), LONG));
            full.close();
            empty.close();
            assert_eq!(push.join().unwrap(), Err(QueueClosed));
            assert_eq!(pop.join().unwrap(), Popped::End);
        });
        assert_eq!(full.pop_all(&mut Vec::new(), LONG), Popped::End);
        assert_eq!(Queue::<u8>::new(1).pop_all(&mut Vec::new(), Duration::ZERO), Popped::Nothing);
    }
}
