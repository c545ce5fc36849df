//! Work that is shared out among the machine's processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

/// What `work` makes of each of `items`, in their order.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut made = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { break made };
            made.push((place, work(item)));
        }
    };
    let mut made: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let joined = workers.into_iter().map(|it| it.join().unwrap_or_else(|why| panic::resume_unwind(why)));
        joined.flatten().collect()
    });
    made.sort_unstable_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_stand_where_items_do() {
        let items: Vec<u64> = (0..1000).collect();
        assert_eq!(super::map(&items, |item| item * 2), (0..1000).map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(super::map(&[0_u8; 0], |_| ()), []);
    }
}
