//! The report of the threads that compress.

use strait_compress::calibrate::CANDIDATES;
use strait_scheduler::{Occupation, WorkDone};

use crate::engines::worker_name;
use crate::outward;
use crate::report::{EngineKind, EngineMethodReport, EngineReport};

/// The sender's engines: its own thread, then its workers.
pub(super) fn engines(occupations: &[Occupation]) -> Vec<EngineReport> {
    let jobs = |engine: &Occupation| engine.done.iter().map(|done| done.jobs).sum::<u64>();
    let all: u64 = occupations.iter().map(jobs).sum();
    let report = |(place, engine): (usize, &Occupation)| EngineReport {
        thread: if place == 0 { outward::NAME.to_owned() } else { worker_name(outward::NAME, place) },
        kind: if place == 0 { EngineKind::PacketThread } else { EngineKind::Worker },
        jobs: jobs(engine),
        job_share: (all > 0).then(|| jobs(engine) as f64 / all as f64),
        transfer_seconds: engine.bringing.as_secs_f64(),
        methods: engine.done.iter().filter_map(method).collect(),
    };
    occupations.iter().enumerate().map(report).collect()
}

fn method(done: &WorkDone) -> Option<EngineMethodReport> {
    Some(EngineMethodReport {
        method: CANDIDATES.get(done.algorithm.0)?.to_string(),
        jobs: done.jobs,
        set_up_seconds: done.cost.set_up.0,
        byte_seconds: done.cost.per_byte.0,
    })
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use strait_model::{Cost, Seconds};
    use strait_scheduler::AlgorithmIndex;

    use super::*;

    #[test]
    fn engines_have_names_shares_and_times() {
        let engine = |jobs: u64, times: f64| Occupation {
            busy: 0.5,
            waits: Duration::ZERO,
            jobs: 0,
            bringing: Duration::from_micros(20),
            done: vec![WorkDone {
                algorithm: AlgorithmIndex(4),
                jobs,
                cost: Cost { set_up: Seconds(1e-5), per_byte: Seconds(4e-9) }.times(times),
            }],
        };
        let shown = engines(&[engine(30, 1.0), engine(10, 4.0)]);
        let facts = |it: &EngineReport| (it.thread.clone(), it.kind, it.jobs, it.job_share.unwrap());
        assert_eq!(facts(&shown[0]), ("strait-out".to_owned(), EngineKind::PacketThread, 30, 0.75));
        assert_eq!(facts(&shown[1]), ("strait-out-1".to_owned(), EngineKind::Worker, 10, 0.25));
        let slow = &shown[1].methods[0];
        assert_eq!((slow.method.as_str(), slow.jobs, slow.byte_seconds), ("zstd-3", 10, 1.6e-8));
        let idle = Occupation { done: Vec::new(), ..engine(0, 1.0) };
        assert_eq!(engines(&[idle])[0].job_share, None);
    }
}
