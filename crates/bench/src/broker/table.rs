//! What was measured of each way, and its rows.

use strait_lab::measure::{RunValues, settle};

use super::stage::{BrokerRun, BrokerStage};
use super::way::{BrokerWay, versions};
use crate::error::Error;
use crate::files::EndPeaks;
use crate::report::{BenchSection, progress};
use crate::target::Target;

/// The most memory that a process of each of the three may use, in MiB.
const MEMORY: Target = Target::AtMost(64.0);

/// What the ends are called.
const ENDS: [&str; 3] = ["sender", "store", "receiver"];

/// Runs by way, in the order of [`BrokerWay::ALL`].
#[derive(Clone, Debug, Default)]
pub(super) struct BrokerTable {
    runs: [Vec<BrokerRun>; BrokerWay::ALL.len()],
    /// Bytes of content.
    bytes: f64,
}

impl BrokerTable {
    /// A section whose rows such tables give.
    pub(super) fn section(
        name: &'static str,
        title: impl Into<String>,
        columns: &[BrokerWay],
    ) -> BenchSection {
        let names: Vec<&str> = columns.iter().map(|way| way.name()).collect();
        let mut section = BenchSection::new(name, title, &names);
        section.notes.push(
            "wire bytes in Ethernet frames on the link of the sender, or of the receiver that fetches; processor seconds of all processes of an end, those of the store with \
             the broker's, without the kernel's work for others; memory is VmHWM of the largest process, and what all had at one \
             time, with the pages of files counted once"
                .to_owned(),
        );
        section.notes.push(
            "a put is durable when it ends with a store in a folder; the S3-compatible server (strait-bucket) synchronises nothing: for \
             the pipe, the object's file is synchronised within the time"
                .to_owned(),
        );
        section.notes.push(versions());
        section
    }

    /// Measures `runs` times the ways that there are, in turn; `after` is called after each.
    pub(super) fn measure(
        section: &mut BenchSection,
        stage: &BrokerStage,
        (name, bytes): (&str, u64),
        (ways, runs): (&[BrokerWay], usize),
        after: &mut dyn FnMut(BrokerWay) -> Result<(), Error>,
    ) -> Result<BrokerTable, Error> {
        let mut table = BrokerTable { bytes: bytes as f64, ..BrokerTable::default() };
        for note in ways.iter().filter_map(|way| stage.missing(*way)) {
            if !section.notes.contains(&note) {
                section.notes.push(note);
            }
        }
        for run in 1..=runs {
            for way in ways.iter().filter(|way| stage.missing(**way).is_none()) {
                section.before.push(settle()?);
                let done = stage.transfer(*way, name)?;
                let subject = format!("{}, {name}, {}", stage.path, way.name());
                progress(section.name, run, &subject, done.durable, "s");
                table.runs[*way as usize].push(done);
                after(*way)?;
            }
        }
        Ok(table)
    }

    /// What `of` says of each run of a way.
    pub(super) fn of(&self, way: BrokerWay, of: impl Fn(&BrokerRun) -> f64) -> RunValues {
        self.runs[way as usize].iter().map(of).collect()
    }

    /// Seconds until all is durable.
    pub(super) fn seconds(&self, way: BrokerWay) -> RunValues {
        self.of(way, |run| run.durable)
    }

    /// Seconds until the command ends.
    pub(super) fn command(&self, way: BrokerWay) -> RunValues {
        self.of(way, |run| run.command)
    }

    /// Processor seconds a GB at one end: 0 for the sender, 1 for the store, 2 for the receiver.
    pub(super) fn processor(&self, way: BrokerWay, end: usize) -> RunValues {
        let gigabytes = self.bytes / 1e9;
        self.of(way, |run| run.processor.map_or(f64::NAN, |it| it[end] / gigabytes))
    }

    /// Adds the rows.
    pub(super) fn rows(&self, section: &mut BenchSection, columns: &[BrokerWay], subject: &str) {
        let cells =
            |of: &dyn Fn(&BrokerRun) -> f64| columns.iter().map(|way| self.of(*way, of)).collect::<Vec<_>>();
        section.row(format!("{subject}, s"), cells(&|run| run.durable));
        section.row("  until the command ends, s", cells(&|run| run.command));
        section.row("  MB/s", cells(&|run| self.bytes / 1e6 / run.durable));
        section.row("  wire MB", cells(&|run| run.wire as f64 / 1e6));
        for (end, name) in ENDS.into_iter().enumerate() {
            let at_end = |of: &dyn Fn(BrokerWay) -> RunValues| -> Option<Vec<RunValues>> {
                let one = |way: &BrokerWay| if way.takes_part(end) { of(*way) } else { RunValues::default() };
                columns.iter().any(|way| way.takes_part(end)).then(|| columns.iter().map(one).collect())
            };
            let memory = |of: fn(&EndPeaks) -> f64| {
                let peak = move |run: &BrokerRun| run.peaks.as_ref().map_or(f64::NAN, |it| of(&it[end]));
                at_end(&|way| self.of(way, peak))
            };
            let rows = [
                (format!("  processor s/GB, {name}"), at_end(&|way| self.processor(way, end))),
                (format!("  largest process, MiB, {name}"), memory(EndPeaks::largest)),
                (format!("  all processes at once, MiB, {name}"), memory(EndPeaks::together)),
            ];
            for (quantity, cells) in rows {
                cells.into_iter().for_each(|cells| section.row(quantity.clone(), cells));
            }
        }
    }

    /// Adds what memory should reach: at the sender and the store in a put, at the store and the receiver in a fetch.
    pub(super) fn judge_memory(&self, section: &mut BenchSection, subject: &str) {
        for (way, ends) in [(BrokerWay::Put, [0, 1]), (BrokerWay::Fetch, [1, 2])] {
            for end in ends {
                let peak = |run: &BrokerRun| run.peaks.as_ref().map_or(f64::NAN, |it| it[end].largest());
                let figure = format!("{subject}, {}: largest process, MiB, {}", way.name(), ENDS[end]);
                section.judge(figure, self.of(way, peak), MEMORY);
            }
        }
    }
}
