use strait_clock::Random;
use strait_model::Seconds;

use super::*;

mod timed;

/// Adds up its bytes.
#[derive(Debug)]
struct AddUp {
    bytes: Vec<u8>,
    sum: u64,
}

impl PoolWork for AddUp {
    /// How many were added up.
    type Tools = usize;

    fn empty() -> AddUp {
        AddUp { bytes: Vec::new(), sum: 0 }
    }

    fn size(&self) -> Option<(AlgorithmIndex, usize)> {
        // Empty work has no price.
        (!self.bytes.is_empty()).then_some((AlgorithmIndex(0), self.bytes.len()))
    }

    fn run(&mut self, tools: &mut usize) -> Option<u64> {
        *tools += 1;
        self.sum = self.bytes.iter().map(|byte| u64::from(*byte)).sum();
        Some(1_000)
    }
}

const NOW: Time = Time::from_millis(1);
/// Bytes of a job that is worth a worker.
const LARGE: usize = 10_000;

fn pool(workers: usize) -> Pool<AddUp> {
    let mut pool = Pool::alone(0);
    let cost = Cost { set_up: Seconds(1e-6), per_byte: Seconds(10e-9) };
    pool.add_workers(workers, core::iter::once(Some(cost)));
    pool
}

/// The workers: whatever they were handed.
type Away = Vec<(usize, PoolJob<AddUp>)>;

fn submit(pool: &mut Pool<AddUp>, order: &mut Reorder<AddUp, u64>, note: u64, away: &mut Away) {
    let mut job = pool.idle_or_surplus();
    job.work.bytes.clear();
    job.work.bytes.resize(LARGE, u8::try_from(note).unwrap());
    pool.submit(order, note, job, NOW, |worker, job| {
        away.push((worker, job));
        None
    });
}

#[test]
fn units_leave_in_order_whatever_ends_first() {
    let mut random = Random::new(7);
    for workers in [0, 1, 3] {
        let (mut pool, mut order, mut away) = (pool(workers), Reorder::default(), Away::new());
        let (mut next, mut left) = (0, 0);
        while left < 200 {
            while next < 200 && pool.has_idle() {
                submit(&mut pool, &mut order, next, &mut away);
                next += 1;
            }
            let done = if away.is_empty() || pool.has_own() && random.below(2) == 0 {
                pool.run_own(NOW).unwrap()
            } else {
                let any = usize::try_from(random.below(away.len() as u64)).unwrap();
                let (_, mut job) = away.swap_remove(any);
                job.run(&mut 0);
                pool.book(&job, NOW);
                job
            };
            order.put(done).unwrap();
            while let Some((note, job)) = order.pop() {
                assert_eq!((note, job.work.sum), (left, left * LARGE as u64));
                pool.put_back(job);
                left += 1;
            }
        }
        assert!(
            order.is_empty() && pool.free() == if workers == 0 { 1 } else { (workers + 1) * JOBS_AN_ENGINE }
        );
        assert_eq!(pool.tools == 200, workers == 0, "workers take their share");
    }
}

#[test]
fn late_job_of_removed_owner_is_returned_to_pool() {
    let (mut pool, mut away) = (pool(2), Away::new());
    let (mut stays, mut goes) = (Reorder::default(), Reorder::default());
    for note in 0..3 {
        submit(&mut pool, &mut stays, note, &mut away);
        submit(&mut pool, &mut goes, note, &mut away);
    }
    let jobs: Vec<_> = goes.drain().collect();
    assert_eq!(jobs.iter().map(|(note, _)| *note).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(jobs.iter().all(|(_, job)| job.is_none()) && goes.is_empty());
    let mut late = 0;
    let own = core::iter::from_fn(|| pool.run_own(NOW)).collect::<Vec<_>>();
    for job in own.into_iter().chain(away.into_iter().map(|(_, job)| job)) {
        if let Err(job) = goes.put(job).or_else(|job| stays.put(job)) {
            pool.put_back(job);
            late += 1;
        }
    }
    assert_eq!(late, 3);
    assert_eq!(core::iter::from_fn(|| stays.pop()).map(|(note, _)| note).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(pool.free(), 3 * JOBS_AN_ENGINE - 3);
}

#[test]
fn jobs_are_bounded_and_one_beyond_the_bound_goes_when_it_is_put_back() {
    for (workers, bound) in [(0, 1), (1, 2 * JOBS_AN_ENGINE), (3, 4 * JOBS_AN_ENGINE)] {
        let mut pool = pool(workers);
        let mut jobs: Vec<_> = core::iter::from_fn(|| pool.idle()).collect();
        assert_eq!((jobs.len(), pool.has_idle()), (bound, false));
        jobs.push(pool.idle_or_surplus());
        assert!(pool.idle().is_none());
        jobs.drain(..).for_each(|job| pool.put_back(job));
        assert_eq!(pool.free(), bound);
    }
}

#[test]
fn done_job_leaves_after_pending_jobs_before_it() {
    let (mut pool, mut order, mut away) = (pool(2), Reorder::default(), Away::new());
    submit(&mut pool, &mut order, 0, &mut away);
    let waiting = pool.idle().unwrap();
    order.push_done(1, waiting);
    assert!(!order.is_done() && order.pop().is_none());
    order.last_done().unwrap().1.bytes.push(9);
    assert_eq!(
        order.iter().map(|(note, work)| (*note, work.is_some())).collect::<Vec<_>>(),
        [(0, false), (1, true)]
    );
    order.put(pool.run_own(NOW).unwrap()).unwrap();
    assert_eq!(core::iter::from_fn(|| order.pop()).map(|(note, _)| note).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn job_without_estimate_or_worker_room_runs_on_calling_thread() {
    let (mut pool, mut order) = (pool(1), Reorder::default());
    let job = pool.idle().unwrap();
    pool.submit(&mut order, 0, job, NOW, |_, _| panic!("it has no price"));
    // The calling thread is busy by its statistics, so the dispatcher names the worker, which refuses.
    let mut refused = 0;
    for note in 1..4 {
        let mut job = pool.idle().unwrap();
        job.work.bytes.resize(LARGE, 1);
        pool.submit(&mut order, note, job, NOW, |_, job| {
            refused += 1;
            Some(job)
        });
    }
    assert!(refused > 0);
    while let Some(job) = pool.run_own(NOW) {
        order.put(job).unwrap();
    }
    assert_eq!(core::iter::from_fn(|| order.pop()).map(|(note, _)| note).collect::<Vec<_>>(), [0, 1, 2, 3]);
}
