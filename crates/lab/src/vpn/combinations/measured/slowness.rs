//! The share of a processor at which this machine's suites are as fast as the paper's in Table 1, and control groups that leave daemons
//! that share.

use std::sync::Arc;

use strait_testbed::{DaemonProcess, ProcessorQuota};

use super::super::figures::SHOWN;
use super::super::parameters::{NULL, ParameterCell, Parameters};
use super::super::pipelined::PipelineSize;
use super::daemon_work::DaemonWork;
use super::grid::{MeasureGrid, is_todays};
use super::stage::TransportStage;
use crate::error::Error;
use crate::measure::RunValues;
use crate::vpn::median;
use crate::vpn::printed::FILES;

/// Tries to come to a share, and how near is enough.
const TRIES: usize = 3;
const NEAR: f64 = 0.03;
/// No quota is corrected by more than this: on a busy machine none gives the share.
const MOST: f64 = 1.25;

/// More than any machine has: as good as no quota.
const ALL: f64 = 1_000.0;

/// A protection's ends as slow as they were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slowness {
    pub(super) protection: usize,
    /// The codec that its work is for.
    pub(super) codec: usize,
    /// The share of a processor at which the suite is as fast as in the paper.
    pub(super) wanted: f64,
    /// The quota that was found for it, as a share.
    pub(super) quota: f64,
    /// The share that the slower end had with it, with enough to do.
    pub(super) share: f64,
    pub(super) work: DaemonWork,
}

/// A control group for each node, or why there is none.
#[derive(Debug)]
pub(super) struct ProcessorGroups(pub(super) Result<Vec<ProcessorQuota>, String>);

impl Slowness {
    /// The speedup of a cell at this slowness: by the equation, or with what daemons take besides.
    pub(super) fn gain(
        &self,
        rates: &Parameters,
        pipeline: Option<PipelineSize>,
        cell: ParameterCell,
        work: Option<&DaemonWork>,
    ) -> f64 {
        let slowed = Parameters { pipeline, ..rates.faster(self.share) };
        let pace = |codec: Option<usize>| {
            let stages = slowed.stages(cell, codec);
            let all = work.map_or(stages, |work| work.added(stages, cell.network, self.share));
            slowed.pace(&all)
        };
        pace(None) / pace(Some(Parameters::recommended(cell)))
    }
}

impl ProcessorGroups {
    /// So many groups, if control groups can be made here.
    pub(super) fn create(number: usize) -> ProcessorGroups {
        let groups: Result<Vec<_>, _> = (0..number).map(ProcessorQuota::create).collect();
        ProcessorGroups(groups.map_err(|error| error.to_string()))
    }

    /// Takes daemons in, each into its own.
    pub(super) fn hold(&self, daemons: &[DaemonProcess]) -> Result<(), Error> {
        let groups = self.0.iter().flatten();
        Ok(groups.zip(daemons).try_for_each(|(group, daemon)| group.add(daemon))?)
    }

    /// Slows both ends to the paper's rates: measures what share the busier end has, and corrects the quota by that.
    pub(super) fn found(
        &self,
        stage: &mut TransportStage,
        grid: &MeasureGrid,
        (rates, contents): (&Parameters, &Arc<[Vec<u8>]>),
        protection: usize,
        work: DaemonWork,
    ) -> Result<Slowness, Error> {
        let wanted = if is_todays(protection) { 1.0 } else { wanted(rates, protection, grid.sizes) };
        let mut found =
            Slowness { protection, codec: stage.codec, wanted, quota: wanted, share: wanted, work };
        if self.0.is_err() || is_todays(protection) || wanted >= 1.0 {
            self.set_all()?;
            return Ok(Slowness { quota: ALL, share: 1.0, ..found });
        }
        for left in (0..TRIES).rev() {
            self.set(found.quota)?;
            found.share = stage.busiest_share(contents, grid.amount, found.quota)?;
            let quotient = found.wanted / found.share;
            if (quotient - 1.0).abs() <= NEAR || left == 0 {
                break;
            }
            found.quota = (found.quota * quotient).clamp(wanted / MOST, wanted * MOST);
        }
        Ok(found)
    }

    /// Limits none.
    pub(super) fn set_all(&self) -> Result<(), Error> {
        self.set(ALL)
    }

    /// Gives every group this share.
    pub(super) fn set(&self, share: f64) -> Result<(), Error> {
        Ok(self.0.iter().flatten().try_for_each(|group| group.set_share(share))?)
    }
}

/// The time of this machine over the paper's for what a protection computes, the geometric mean over payloads; where it computes nothing,
/// for compressing with both codecs. At most 1.
pub(super) fn wanted(rates: &Parameters, protection: usize, sizes: [usize; 2]) -> f64 {
    let printed = Parameters::printed();
    let suite = |size| printed.suite_rate(protection, size) / rates.suite_rate(protection, size);
    let codec =
        |(codec, size): (usize, usize)| compressing(rates, codec, size) / compressing(&printed, codec, size);
    let quotients: Vec<f64> = if rates.protections[protection].class == NULL {
        [0, 1].into_iter().flat_map(|it| sizes.map(|size| codec((it, size)))).collect()
    } else {
        sizes.map(suite).to_vec()
    };
    let mean = quotients.iter().map(|quotient| quotient.ln()).sum::<f64>() / quotients.len() as f64;
    mean.exp().min(1.0)
}

/// Seconds to compress a byte, the median over files that the paper shows, or over those of another corpus.
fn compressing(rates: &Parameters, codec: usize, size: usize) -> f64 {
    let shown = |file: &str| !FILES.contains(&file) || SHOWN.contains(&file);
    let files = rates.files.iter().zip(&rates.codecs[codec].files).filter(|(name, _)| shown(name));
    median(&files.map(|(_, sizes)| sizes[size].compress.byte().0).collect::<RunValues>())
}
