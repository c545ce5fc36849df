//! The machine that is measured on, and whether it has something else to do.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use strait_testbed::interrupt;

use crate::error::Error;

/// How long the processors are watched before a run.
const WATCH: Duration = Duration::from_millis(250);
/// A run starts when less of the processors than this is in use,
const QUIET: f64 = 0.25;
/// or after this much waiting.
const PATIENCE: Duration = Duration::from_secs(8);

/// What kind of machine it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    /// The processor's model.
    pub(crate) processor: String,
    /// How many processors this program may use.
    pub(crate) cores: usize,
    /// The kernel's version.
    pub(crate) kernel: String,
}

impl Machine {
    /// This machine.
    pub(crate) fn this() -> Machine {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Machine {
            processor: model(&cpuinfo).unwrap_or("unknown processor").to_owned(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
        }
    }
}

/// The model's name: `model name` on x86, `Model` or nothing on ARM (proc(5)).
fn model(cpuinfo: &str) -> Option<&str> {
    let field = |name: &str| {
        let line =
            cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        line.split_once(':').map(|(_, value)| value.trim())
    };
    field("model name").or_else(|| field("Model"))
}

/// What the machine had to do just before a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Load {
    /// Load average over a minute, which earlier runs of this program raise.
    pub(crate) average: f64,
    /// Share of the processors that was in use, 0 to 1, in the quarter second before.
    pub(crate) busy: f64,
}

/// Waits until the machine is quiet, or has not become so in time, and says how it is.
pub(crate) fn settle() -> Result<Load, Error> {
    let start = Instant::now();
    loop {
        interrupt::check()?;
        let before = read("/proc/stat")?;
        thread::sleep(WATCH);
        let busy = busy(&before, &read("/proc/stat")?).unwrap_or(1.0);
        if busy < QUIET || start.elapsed() > PATIENCE {
            let average = read("/proc/loadavg")?;
            let average = average.split_whitespace().next().and_then(|first| first.parse().ok());
            return Ok(Load { average: average.unwrap_or(f64::NAN), busy });
        }
    }
}

/// Waits for `span`, unless a signal asks for the end.
pub(crate) fn pause(span: Duration) -> Result<(), Error> {
    let end = Instant::now() + span;
    loop {
        interrupt::check()?;
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Ok(());
        }
        thread::sleep(rest.min(WATCH));
    }
}

fn read(path: &str) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::doing(format!("read {path}")))
}

/// The share of time between two states of `/proc/stat` in which processors were neither idle nor waiting for disks
/// (proc(5): the fourth and fifth column).
fn busy(before: &str, after: &str) -> Option<f64> {
    let times = |text: &str| -> Option<(u64, u64)> {
        let columns = text.lines().next()?.strip_prefix("cpu ")?;
        let columns: Vec<u64> = columns.split_whitespace().filter_map(|it| it.parse().ok()).take(8).collect();
        Some((columns.iter().sum(), columns.get(3)? + columns.get(4)?))
    };
    let ((total, idle), (later_total, later_idle)) = (times(before)?, times(after)?);
    let (total, idle) = (later_total.checked_sub(total)?, later_idle.saturating_sub(idle));
    (total > 0).then(|| 1.0 - idle as f64 / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_two_kinds_of_processor() {
        assert_eq!(model("processor\t: 0\nmodel name\t: AMD EPYC 7763\n"), Some("AMD EPYC 7763"));
        assert_eq!(model("processor\t: 0\nModel\t\t: Raspberry Pi 5\n"), Some("Raspberry Pi 5"));
        assert_eq!(model("processor : 0\n"), None);
    }

    #[test]
    fn what_is_not_idle_is_busy() {
        let before = "cpu  100 0 100 700 100 0 0 0 9 9\ncpu0 1 2 3 4\n";
        let after = "cpu  130 0 120 740 110 0 0 0 9 9\n";
        assert_eq!(busy(before, after), Some(0.5));
        assert_eq!(busy(before, before), None);
        assert_eq!(busy("", after), None);
    }
}
