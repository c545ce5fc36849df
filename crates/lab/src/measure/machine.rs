//! The machine that is measured on, and whether it has something else to do.

use std::time::Duration;
use std::{fmt, fs, io, thread};

use serde::Serialize;

/// What kind of machine it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineInfo {
    /// The processor's model.
    pub processor: String,
    /// How many processors this program may use.
    pub cores: usize,
    /// The kernel's version.
    pub kernel: String,
    /// How the kernel chooses the processor's frequency, if it does.
    pub governor: Option<String>,
}

impl MachineInfo {
    /// This machine.
    #[must_use]
    pub fn this() -> MachineInfo {
        let read = |path| fs::read_to_string(path).map(|text| text.trim().to_owned());
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        MachineInfo {
            processor: model(&cpuinfo).unwrap_or("unknown processor").to_owned(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").ok(),
        }
    }
}

impl fmt::Display for MachineInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MachineInfo { processor, cores, kernel, governor } = self;
        write!(f, "{processor}, {cores} cores, Linux {kernel}")?;
        governor.as_ref().map_or(Ok(()), |governor| write!(f, ", governor {governor}"))
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
pub struct MachineLoad {
    /// Load average over a minute, which earlier runs of this program raise.
    pub average: f64,
    /// Share of the processors that was in use, 0 to 1, while they were watched.
    pub busy: f64,
}

impl MachineLoad {
    /// What the machine does while this call watches it for `span`.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn watched(span: Duration) -> io::Result<MachineLoad> {
        let before = fs::read_to_string("/proc/stat")?;
        thread::sleep(span);
        let busy = busy(&before, &fs::read_to_string("/proc/stat")?).unwrap_or(1.0);
        let average = fs::read_to_string("/proc/loadavg")?;
        let average = average.split_whitespace().next().and_then(|first| first.parse().ok());
        Ok(MachineLoad { average: average.unwrap_or(f64::NAN), busy })
    }
}

/// What the processors do between two moments.
#[derive(Clone, Debug)]
pub struct BusyWatch {
    before: String,
}

impl BusyWatch {
    /// From now on.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn start() -> io::Result<BusyWatch> {
        Ok(BusyWatch { before: fs::read_to_string("/proc/stat")? })
    }

    /// Share of all processors that was in use since then, 0 to 1.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn share(&self) -> io::Result<f64> {
        Ok(busy(&self.before, &fs::read_to_string("/proc/stat")?).unwrap_or(1.0))
    }
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
    fn a_machine_in_words() {
        let (processor, kernel) = ("AMD EPYC".to_owned(), "6.18".to_owned());
        let machine = MachineInfo { processor, cores: 2, kernel, governor: None };
        assert_eq!(machine.to_string(), "AMD EPYC, 2 cores, Linux 6.18");
        let machine = MachineInfo { governor: Some("performance".to_owned()), ..machine };
        assert_eq!(machine.to_string(), "AMD EPYC, 2 cores, Linux 6.18, governor performance");
    }

    #[test]
    fn what_is_not_idle_is_busy() {
        let before = "cpu  100 0 100 700 100 0 0 0 9 9\ncpu0 1 2 3 4\n";
        let after = "cpu  130 0 120 740 110 0 0 0 9 9\n";
        assert_eq!(busy(before, after), Some(0.5));
        assert_eq!(busy(before, before), None);
        assert_eq!(busy("", after), None);
    }

    #[test]
    fn a_machine_has_a_core_and_a_share_of_it_in_use() {
        assert!(MachineInfo::this().cores > 0);
        let load = MachineLoad::watched(Duration::from_millis(20)).unwrap();
        assert!((0.0..=1.0).contains(&load.busy) && load.average >= 0.0, "{load:?}");
    }
}
