//! What was measured of each way, and its rows.

use strait_lab::measure::{RunValues, settle};

use super::processes::EndPeaks;
use super::stage::{FileRun, FileStage};
use super::way::{FileWay, versions};
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::target::Target;

/// The most memory that either end may use, in MiB.
pub(super) const MEMORY: Target = Target::AtMost(64.0);

/// What the ends of a transfer are called.
pub(super) const ENDS: [&str; 2] = ["sender", "receiver"];

/// Runs by way, in the order of [`FileWay::ALL`].
#[derive(Clone, Debug, Default)]
pub(super) struct FileTable {
    runs: [Vec<FileRun>; FileWay::ALL.len()],
    /// Bytes of content.
    bytes: f64,
}

impl FileTable {
    /// A section whose rows such tables give.
    pub(super) fn section(name: &'static str, title: impl Into<String>) -> BenchSection {
        let mut section = BenchSection::new(name, title, &FileWay::ALL.map(FileWay::name));
        section.notes.push(
            "seconds until the file is durable; wire bytes in Ethernet frames; processor seconds of all processes of an end with \
             the daemons', without the kernel's work for others; memory is VmHWM of the largest process, and what all had at one time, with the pages of files, which they share, \
             counted once"
                .to_owned(),
        );
        section.notes.push(versions());
        section
    }

    /// Measures `runs` times the ways that there are, in turn. `prepare` is called before each with nothing in the inbox.
    pub(super) fn measure(
        section: &mut BenchSection,
        stage: &FileStage,
        (name, bytes): (&str, u64),
        (ways, runs): (&[FileWay], usize),
        prepare: &dyn Fn() -> Result<(), Error>,
    ) -> Result<FileTable, Error> {
        let mut table = FileTable { bytes: bytes as f64, ..FileTable::default() };
        let missing = ways.iter().filter_map(|way| stage.missing(*way));
        for note in missing.chain([stage.congestion_control()?]) {
            if !section.notes.contains(&note) {
                section.notes.push(note);
            }
        }
        for run in 1..=runs {
            for way in ways.iter().filter(|way| stage.missing(**way).is_none()) {
                section.before.push(settle()?);
                stage.clear(name)?;
                prepare()?;
                let done = stage.transfer(*way, name)?;
                progress(
                    section.name,
                    run,
                    &format!("{}, {name}, {}", stage.path, way.name()),
                    done.seconds,
                    "s",
                );
                table.runs[*way as usize].push(done);
            }
        }
        stage.clear(name)?;
        Ok(table)
    }

    /// What `of` says of each run of a way.
    pub(super) fn of(&self, way: FileWay, of: impl Fn(&FileRun) -> f64) -> RunValues {
        self.runs[way as usize].iter().map(of).collect()
    }

    /// Seconds of each run of a way.
    pub(super) fn seconds(&self, way: FileWay) -> RunValues {
        self.of(way, |run| run.seconds)
    }

    /// Wire bytes of each run of a way, both directions.
    pub(super) fn wire(&self, way: FileWay) -> RunValues {
        self.of(way, |run| (run.wire[0] + run.wire[1]) as f64)
    }

    /// Mbit/s of content.
    pub(super) fn goodput(&self, way: FileWay) -> RunValues {
        self.seconds(way).map(|seconds| self.bytes * 8.0 / 1e6 / seconds)
    }

    /// Mbit/s of Ethernet frames from the sender.
    pub(super) fn wire_rate(&self, way: FileWay) -> RunValues {
        self.of(way, |run| run.wire[0] as f64 * 8.0 / 1e6 / run.seconds)
    }

    /// Adds the rows, and the target for memory.
    pub(super) fn tell(&self, section: &mut BenchSection, subject: &str) {
        self.rows(section, subject);
        for (end, name) in ENDS.into_iter().enumerate() {
            for (what, of) in [
                ("largest process", EndPeaks::largest as fn(&EndPeaks) -> f64),
                ("all processes at once", EndPeaks::together),
            ] {
                let values =
                    self.of(FileWay::Strait, |run| run.peaks.as_ref().map_or(f64::NAN, |it| of(&it[end])));
                section.judge(format!("{subject}: {what}, MiB, {name}"), values, MEMORY);
            }
        }
    }

    /// Adds the rows.
    pub(super) fn rows(&self, section: &mut BenchSection, subject: &str) {
        let gigabytes = self.bytes / 1e9;
        let cell = |of: &dyn Fn(&FileRun) -> f64| FileWay::ALL.map(|way| self.of(way, of));
        section.row(format!("{subject}, s"), cell(&|run| run.seconds));
        for (end, name) in ["there", "back"].into_iter().enumerate() {
            section.row(format!("  wire MB {name}"), cell(&|run| run.wire[end] as f64 / 1e6));
        }
        for (end, name) in ENDS.into_iter().enumerate() {
            let spent = |run: &FileRun| run.processor.map_or(f64::NAN, |it| it[end] / gigabytes);
            section.row(format!("  processor s/GB, {name}"), cell(&spent));
        }
        for (end, name) in ENDS.into_iter().enumerate() {
            let largest = |run: &FileRun| run.peaks.as_ref().map_or(f64::NAN, |it| it[end].largest());
            let together = |run: &FileRun| run.peaks.as_ref().map_or(f64::NAN, |it| it[end].together());
            section.row(format!("  largest process, MiB, {name}"), cell(&largest));
            section.row(format!("  all processes at once, MiB, {name}"), cell(&together));
        }
    }
}

/// Run by run, the lesser of both; the one there is, where the other was not measured.
pub(super) fn lesser(one: &RunValues, other: &RunValues) -> RunValues {
    if one.values().is_empty() {
        return other.clone();
    }
    if other.values().is_empty() {
        return one.clone();
    }
    one.map(|it| -it).max(&other.map(|it| -it)).map(|it| -it)
}

/// A size as tables have it.
pub(crate) fn size_name(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{:.1} MB", bytes as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lesser_is_taken_run_by_run_and_of_what_there_is() {
        let one: RunValues = [1.0, 4.0].into_iter().collect();
        let other: RunValues = [2.0, 3.0].into_iter().collect();
        assert_eq!(lesser(&one, &other).values(), [1.0, 3.0]);
        assert_eq!(lesser(&RunValues::default(), &other).values(), [2.0, 3.0]);
        assert_eq!(lesser(&one, &RunValues::default()).values(), [1.0, 4.0]);
    }

    #[test]
    fn sizes_are_told_in_the_unit_they_were_chosen_in() {
        assert_eq!(size_name(1 << 30), "1024 MiB");
        assert_eq!(size_name(5_775_000), "5.8 MB");
    }
}
