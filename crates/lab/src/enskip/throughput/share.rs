//! RC4 where other threads want the same processor: the kernel's scheduler limits its share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::memory::{MemoryRoom, MemoryRun, kbytes};
use crate::enskip::algorithm::Combination;
use crate::enskip::packet::SkipSettings;
use crate::enskip::printed::RC4;
use crate::error::Error;
use crate::measure::{RunValues, ThreadMoment, pin};

/// Threads that want the processor as well: RC4 is left all of it, half, a quarter and an eighth.
pub(super) const RIVALS: [usize; 4] = [0, 1, 3, 7];

/// What RC4 did beside so many rivals, a value a run.
#[derive(Clone, Debug, Default)]
pub(super) struct ShareRuns {
    /// Parts of a hundred of the processor that it had.
    pub(super) share: RunValues,
    /// kbytes/s by the clock on the wall.
    pub(super) rate: RunValues,
}

/// RC4 beside each number of rivals, so often and so long.
pub(super) fn measured(file: &Arc<[u8]>, repeats: usize, span: Duration) -> Result<Vec<ShareRuns>, Error> {
    let mut all = vec![ShareRuns::default(); RIVALS.len()];
    for _ in 0..repeats {
        for (rivals, runs) in RIVALS.into_iter().zip(&mut all) {
            let (share, rate) = beside(rivals, file, span)?;
            runs.share.push(share);
            runs.rate.push(rate);
        }
    }
    Ok(all)
}

fn beside(rivals: usize, file: &Arc<[u8]>, span: Duration) -> Result<(f64, f64), Error> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..rivals {
            scope.spawn(|| {
                let _ = pin(0);
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let worker = scope.spawn(|| worked(file, span));
        let worked = worker.join();
        over.store(true, Ordering::Relaxed);
        worked.unwrap_or_else(|why| std::panic::resume_unwind(why))
    })
}

/// Share of the processor and rate of a worker that has so long.
fn worked(file: &Arc<[u8]>, span: Duration) -> Result<(f64, f64), Error> {
    // Where that is forbidden, rivals may be on other processors; the share is measured all the same.
    let _ = pin(0);
    let settings = SkipSettings::of(Combination::of(RC4, false));
    let (mut run, mut room) = (MemoryRun::new(settings, file)?, MemoryRoom::new(file.len()));
    let (start, clock) = (ThreadMoment::now(), Instant::now());
    let bytes = run.run_until(&mut room, || clock.elapsed() >= span)?;
    let (processor, wall) = (start.elapsed(), clock.elapsed());
    Ok((processor.as_secs_f64() / wall.as_secs_f64() * 100.0, kbytes(bytes, wall)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enskip::packet::PAYLOAD;

    #[test]
    fn rivals_end_and_each_run_has_its_share() {
        let file: Arc<[u8]> = vec![3; 4 * PAYLOAD].into();
        let runs = measured(&file, 2, Duration::from_millis(5)).unwrap();
        assert_eq!(runs.len(), RIVALS.len());
        for it in runs {
            assert_eq!((it.share.values().len(), it.rate.values().len()), (2, 2));
            assert!(it.share.values().iter().all(|share| (0.0..110.0).contains(share)), "{it:?}");
            assert!(it.rate.values().iter().all(|rate| *rate > 0.0), "{it:?}");
        }
    }
}
