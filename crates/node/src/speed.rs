//! The speed of this machine: measured at the first start of a program, and kept for a day.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use strait_compress::calibrate::CalibrationNumbers;
use strait_compress::{Calibration, Codecs};
use strait_crypto::{Ranking, Suite};

use crate::folders::cache_folder;
use crate::path_memory::unix_time;
use crate::{cpu_time, kept_file};

/// The name of the file.
const NAME: &str = "speed";
/// Most bytes of it: 85 numbers of at most 24 digits, names, and some room.
const FILE_MAX: usize = 8 << 10;
/// Seconds after which it is measured again: a processor that was slowed, by heat or on battery, may be faster the next day.
const AGE_MAX: u64 = 24 * 3600;

/// The cost of suites and codecs on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSpeed {
    /// Sealing and opening.
    pub ranking: Ranking,
    /// Compressing and expanding.
    pub calibration: Calibration,
}

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptSpeed {
    /// The program and the processor that it holds for.
    on: Measurer,
    /// The time of the measurement, in seconds since 1970.
    at: u64,
    /// Nanoseconds a packet, in the order of [`Suite::ALL`].
    suites: [u32; Suite::COUNT],
    /// In the order of [`CANDIDATES`].
    codecs: CalibrationNumbers,
}

/// The program that measured, and the processor.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Measurer {
    /// Its version, and its file's length and time.
    program: (String, u64, i64, i64),
    processor: String,
}

impl MachineSpeed {
    /// Returns what this program measured here less than a day ago, or measures now, in some 30 ms of a processor and 230 at most, and
    /// keeps that where there is a folder for it.
    #[must_use]
    pub fn of_this_machine() -> MachineSpeed {
        let path = cache_folder().map(|folder| folder.join(NAME));
        let known = Measurer::this().ok().zip(path);
        if let Some(kept) = known.as_ref().and_then(|(this, path)| read(path, this, unix_time())) {
            tracing::debug!(?kept, "suites and codecs: as they were measured");
            return kept;
        }
        let measured = MachineSpeed::measured();
        tracing::debug!(?measured, "suites and codecs calibrated");
        if let Some((this, path)) = known
            && let Err(error) = write(&path, this, &measured)
        {
            tracing::debug!("cannot keep what suites and codecs cost in {}: {error}", path.display());
        }
        measured
    }

    fn measured() -> MachineSpeed {
        let ranking = strait_crypto::calibrate(cpu_time::of_this_thread);
        let calibration = strait_compress::calibrate(&mut Codecs::new(), cpu_time::of_this_thread);
        MachineSpeed { ranking, calibration }
    }
}

impl Measurer {
    fn this() -> io::Result<Measurer> {
        let program = std::fs::metadata("/proc/self/exe")?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let all = std::fs::read_to_string("/proc/cpuinfo")?;
        // Which of them there are depends on the architecture; all cores of a machine are taken to be alike.
        let names = ["model name", "CPU implementer", "CPU part", "cpu", "uarch"];
        let named = |name: &str| all.lines().find(|line| line.split('\t').next() == Some(name));
        let processor = names.into_iter().filter_map(named).collect::<Vec<_>>().join("; ");
        Ok(Measurer {
            program: (version, program.len(), program.mtime(), program.mtime_nsec()),
            processor: processor.chars().take(256).collect(),
        })
    }
}

/// Returns what the file says if it holds for this program and is of the last day.
fn read(path: &Path, this: &Measurer, now: u64) -> Option<MachineSpeed> {
    let bytes = kept_file::read(path, FILE_MAX).ok().filter(|bytes| bytes.len() <= FILE_MAX)?;
    let kept: KeptSpeed = serde_json::from_slice(&bytes).ok()?;
    let young = now.checked_sub(kept.at).is_some_and(|age| age < AGE_MAX);
    let calibration = Calibration::from_numbers(&kept.codecs)?;
    let speed = MachineSpeed { ranking: Ranking { nanos_per_packet: kept.suites }, calibration };
    (young && kept.on == *this).then_some(speed)
}

fn write(path: &Path, on: Measurer, speed: &MachineSpeed) -> io::Result<()> {
    let kept = KeptSpeed {
        on,
        at: unix_time(),
        suites: speed.ranking.nanos_per_packet,
        codecs: speed.calibration.numbers(),
    };
    kept_file::replace(path, &serde_json::to_vec(&kept)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn assumed() -> MachineSpeed {
        MachineSpeed {
            ranking: Ranking { nanos_per_packet: [7; Suite::COUNT] },
            calibration: Calibration::assumed(),
        }
    }

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            Folder(std::env::temp_dir().join(format!("strait-speed-{name}-{}", std::process::id())))
        }

        fn file(&self) -> PathBuf {
            self.0.join("cache").join(NAME)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn this() -> Measurer {
        Measurer::this().unwrap()
    }

    #[test]
    fn figures_are_kept_for_a_day_for_the_same_program_and_processor() {
        let folder = Folder::new("kept");
        let path = folder.file();
        assert_eq!(read(&path, &this(), unix_time()), None);
        write(&path, this(), &assumed()).unwrap();
        let now = unix_time();
        let kept = read(&path, &this(), now).unwrap();
        assert_eq!(kept.ranking, assumed().ranking);
        // Decimal digits may cost the last bit.
        let all = |speed: MachineSpeed| speed.calibration.numbers().concat();
        let pairs = all(kept).into_iter().zip(all(assumed()));
        assert!(pairs.into_iter().all(|(kept, given)| (kept - given).abs() <= given * 1e-15));
        assert_eq!(read(&path, &this(), now + AGE_MAX), None, "a day later");
        assert_eq!(read(&path, &this(), now - 3600), None, "a clock that was wrong");
        for other in [
            Measurer { processor: "another".into(), ..this() },
            Measurer { program: ("0".into(), 0, 0, 0), ..this() },
        ] {
            assert_eq!(read(&path, &other, now), None);
        }
    }

    #[test]
    fn a_file_with_anything_else_is_measured_again() {
        let folder = Folder::new("wrong");
        let path = folder.file();
        write(&path, this(), &assumed()).unwrap();
        let right = std::fs::read_to_string(&path).unwrap();
        assert!(right.len() < FILE_MAX / 2, "{}", right.len());
        for wrong in [
            right.replacen("8.2e-8", "-8.2e-8", 1),
            right[..right.len() - 2].to_owned(),
            right.replacen("1.296", "0.0", 1),
            right.replacen("1.296", "1e999", 1),
            format!("{right}{}", " ".repeat(FILE_MAX)),
            String::new(),
        ] {
            assert_ne!(wrong, right);
            std::fs::write(&path, &wrong).unwrap();
            assert_eq!(read(&path, &this(), unix_time()), None, "{wrong:.200}");
        }
        // And not where a link leads.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(folder.0.join("elsewhere"), right).unwrap();
        std::os::unix::fs::symlink("../elsewhere", &path).unwrap();
        assert_eq!(read(&path, &this(), unix_time()), None);
    }
}
