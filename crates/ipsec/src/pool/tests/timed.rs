//! Pools in virtual time, on engines of any speed.

use super::*;

/// Nanoseconds a byte on an engine of speed 1, the pool's price for all of them.
const BYTE_NANOS: f64 = 10.0;
/// The time to bring a job to a worker, and to bring it back.
const BRINGING: Duration = Duration::from_micros(10);

/// So many bytes of work.
#[derive(Debug)]
struct Timed(usize);

impl PoolWork for Timed {
    /// The time that it takes over the pool's price.
    type Tools = f64;

    fn empty() -> Timed {
        Timed(0)
    }

    fn size(&self) -> Option<(AlgorithmIndex, usize)> {
        Some((AlgorithmIndex(0), self.0))
    }

    fn run(&mut self, slower: &mut f64) -> Option<u64> {
        Some((self.0 as f64 * BYTE_NANOS * *slower) as u64)
    }
}

/// The outcome of some jobs.
#[derive(Debug)]
struct TimedOutcome {
    /// Bytes by engine, the calling thread first.
    bytes: Vec<usize>,
    /// Work that was done over what all engines could do in the time.
    used: f64,
}

/// A calling thread and workers, of which `slower` says how many times as long each takes.
struct TimedMachine {
    pool: Pool<Timed>,
    order: Reorder<Timed, usize>,
    slower: Vec<f64>,
    /// The time at which each worker has done what it has.
    free: Vec<Time>,
    /// The jobs that workers have, each with the time at which it is back.
    away: Vec<(Time, PoolJob<Timed>)>,
    bytes: Vec<usize>,
    now: Time,
}

impl TimedMachine {
    fn new(slower: &[f64]) -> TimedMachine {
        let mut pool = Pool::alone(slower[0]);
        let cost = Cost { set_up: Seconds(0.0), per_byte: Seconds(BYTE_NANOS * 1e-9) };
        pool.add_workers(slower.len() - 1, core::iter::once(Some(cost)));
        TimedMachine {
            pool,
            order: Reorder::default(),
            slower: slower.to_vec(),
            free: vec![Time::ZERO; slower.len()],
            away: Vec::new(),
            bytes: vec![0; slower.len()],
            now: Time::from_millis(1),
        }
    }

    fn submit(&mut self, note: usize, bytes: usize) {
        let mut job = self.pool.idle().unwrap();
        job.work.0 = bytes;
        let TimedMachine { pool, order, slower, free, away, now, .. } = self;
        pool.submit(order, note, job, *now, |worker, mut job| {
            job.run(&mut slower[worker].clone());
            let begins = free[worker].max(*now + BRINGING);
            free[worker] = begins + Duration::from_nanos(job.took.unwrap());
            away.push((free[worker] + BRINGING, job));
            None
        });
    }

    /// The next job that is done: one that a worker has brought back, else one of the calling thread's own, else the next that comes.
    fn next_done(&mut self) -> PoolJob<Timed> {
        let first = (0..self.away.len()).min_by_key(|at| self.away[*at].0);
        let back = first.is_some_and(|at| self.away[at].0 <= self.now);
        if !back && let Some(job) = self.pool.run_own(self.now) {
            self.now += Duration::from_nanos(job.took.unwrap());
            return job;
        }
        let (at, job) = self.away.swap_remove(first.expect("something is under way"));
        self.now = self.now.max(at);
        self.pool.book(&job, self.now);
        job
    }

    /// Does jobs of these sizes, as many at once as the pool takes.
    fn run(&mut self, sizes: &[usize]) -> TimedOutcome {
        let (begin, mut next, mut left) = (self.now, 0, 0);
        self.bytes.fill(0);
        while left < sizes.len() {
            while next < sizes.len() && self.pool.has_idle() {
                self.submit(next, sizes[next]);
                next += 1;
            }
            let job = self.next_done();
            self.bytes[job.engine.unwrap()] += job.work.0;
            self.order.put(job).unwrap();
            while let Some((note, job)) = self.order.pop() {
                assert_eq!((note, job.work.0), (left, sizes[left]), "in order");
                self.pool.put_back(job);
                left += 1;
            }
        }
        assert!(self.order.is_empty() && self.away.is_empty());
        assert_eq!(self.pool.free(), self.slower.len() * JOBS_AN_ENGINE);
        let speeds: f64 = self.slower.iter().map(|slower| 1.0 / slower).sum();
        let work = sizes.iter().sum::<usize>() as f64 * BYTE_NANOS / 1e9;
        let used = work / (self.now.since(begin).as_secs_f64() * speeds);
        TimedOutcome { bytes: self.bytes.clone(), used }
    }
}

impl TimedOutcome {
    /// The share of all bytes that an engine had.
    fn share(&self, engine: usize) -> f64 {
        self.bytes[engine] as f64 / self.bytes.iter().sum::<usize>() as f64
    }
}

/// Jobs of 32,768 bytes.
fn equal() -> Vec<usize> {
    vec![32_768; 4_000]
}

/// Jobs of 1,400 to 65,536 bytes, long and short as often.
fn mixed() -> Vec<usize> {
    let mut random = Random::new(3);
    (0..4_000).map(|_| if random.below(2) == 0 { 1_400 } else { 65_536 }).collect()
}

/// A full engine is waited for; the next one with room may be the slow one, and all others wait behind it.
#[test]
fn slow_engine_does_not_hold_up_the_others() {
    for (slower, sizes, least) in [
        (&[1.0, 4.0][..], equal(), 0.85),
        (&[4.0, 1.0], equal(), 0.7),
        (&[1.0, 1.0, 4.0], equal(), 0.8),
        (&[1.0, 4.0], mixed(), 0.75),
    ] {
        let outcome = TimedMachine::new(slower).run(&sizes);
        assert!(outcome.used > least, "{slower:?}: {outcome:?}");
    }
}

#[test]
fn shares_follow_speeds_whichever_engine_is_slow() {
    for slower in [&[1.0, 4.0][..], &[4.0, 1.0], &[1.0, 1.0, 4.0], &[1.0, 4.0, 1.0], &[1.0; 3]] {
        let speeds: f64 = slower.iter().map(|slower| 1.0 / slower).sum();
        let outcome = TimedMachine::new(slower).run(&equal());
        for (engine, slower) in slower.iter().enumerate() {
            let (share, due) = (outcome.share(engine), 1.0 / slower / speeds);
            assert!((share - due).abs() < 0.1, "{engine}: {share}, not {due}: {outcome:?}");
        }
    }
}

/// A slow worker is not tried anew after each pause, as it was with what is forgotten in half a second alone.
#[test]
fn slow_engine_is_known_after_a_pause() {
    let mut machine = TimedMachine::new(&[1.0, 1.0, 4.0]);
    machine.run(&equal());
    let mut bytes = 0;
    for _ in 0..50 {
        machine.now += Duration::from_secs(3);
        bytes += machine.run(&[32_768; 3]).bytes[2];
    }
    let share = bytes as f64 / (50.0 * 3.0 * 32_768.0);
    assert!(share < 0.15, "{share}");
}

#[test]
fn engine_that_becomes_fast_again_gets_its_share_again() {
    let mut machine = TimedMachine::new(&[1.0, 4.0]);
    assert!(machine.run(&equal()).share(1) < 0.3);
    machine.slower[1] = 1.0;
    machine.run(&equal());
    let share = machine.run(&equal()).share(1);
    assert!((0.4..0.6).contains(&share), "{share}");
}

#[test]
fn nothing_waits_for_ever_for_an_engine_that_hardly_moves() {
    let mut machine = TimedMachine::new(&[1.0, 1.0, 5_000.0]);
    let outcome = machine.run(&mixed());
    assert!(outcome.share(2) < 0.05, "{outcome:?}");
}
