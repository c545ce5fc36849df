//! Figures 6 to 9 with real tunnels: two hosts in network namespaces, AH, ESP and IPComp in transport mode at an MTU of 1,280 bytes, and
//! daemons that a control group slows to the paper's processor.
//!
//! - `grid`: what is measured, and how long;
//! - `node`, `stage`: a configuration; hosts, links, daemons and datagrams between them;
//! - `codec`: IPComp's codecs, measured;
//! - `slowness`: the share of a processor at which suites are as fast as in Table 1;
//! - `daemon_work`: what a daemon takes besides, which the equation leaves out;
//! - `tables`, `notes`: the cells beside the equation;
//! - `hub`: clients in number, and one server.

mod codec;
mod daemon_work;
mod grid;
mod hub;
mod node;
mod notes;
mod slowness;
mod stage;
mod tables;

use std::path::PathBuf;

use serde::Serialize;

use super::PipelineSize;
use super::claims;
use super::figures;
use super::here;
use super::parameters::{ParameterCell, Parameters};
use crate::claim::FigureSource;
use crate::corpus::Corpus;
use crate::error::Error;
use crate::figure::Figure;
use crate::report::LabReport;
use crate::steps::{Effort, StepCounter, StepNote};
use crate::vpn::PAPER;
use crate::vpn::printed::{NETWORKS, SIZES};
use daemon_work::DaemonWork;
use grid::MeasureGrid;
pub use hub::{HubCell, MOST_CLIENTS, MeasuredHub, hub};
use slowness::{ProcessorGroups, Slowness};
pub use stage::Transaction;
use stage::TransportStage;

/// A measurement with tunnels.
#[derive(Clone, Debug)]
pub struct VpnMeasure {
    /// The `strait` of all nodes, with the algorithms of the paper's time.
    pub program: PathBuf,
}

/// A report, with every measured cell behind it and with charts.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredFigures {
    /// Tables, sentences and notes.
    #[serde(flatten)]
    pub report: LabReport,
    /// All of them.
    pub cells: Vec<MeasuredCell>,
    /// Figures 6 to 9.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

/// A cell of Figures 6 to 9, or one of them with a suite of today at full speed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredCell {
    #[serde(skip)]
    place: ParameterCell,
    /// Encryption and authentication.
    pub protection: String,
    /// The codec.
    pub compression: String,
    /// The payload.
    pub payload: &'static str,
    /// The file that it is of.
    pub benchmark: String,
    /// The network.
    pub network: &'static str,
    /// The share of a processor that each end has.
    pub processor_share: f64,
    /// Seconds of a transaction without compression.
    pub plain: Transaction,
    /// With it.
    pub compressed: Transaction,
    /// Stages at the same time, as they were: packets in flight.
    pub in_flight: FormSpeedup,
    /// Stages one after another: the sum of what each took.
    pub one_after_another: FormSpeedup,
}

/// A speedup in one form.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FormSpeedup {
    /// Measured.
    pub measured: f64,
    /// By the equation.
    pub equation: f64,
    /// By the equation with what daemons take besides.
    pub with_daemons: f64,
}

impl FormSpeedup {
    /// By how many parts of a hundred the equation is above what was measured, without and with daemons.
    fn errors(self) -> [f64; 2] {
        [self.equation, self.with_daemons].map(|computed| (computed / self.measured - 1.0) * 100.0)
    }
}

/// Measures Figures 6 to 9, and the same cells under today's usual suite at full speed.
///
/// # Errors
/// [`Error`] when hosts cannot be made, a program lacks the paper's algorithms, or a signal asks for the end.
pub fn figures_measured(
    effort: Effort,
    corpus: &Corpus,
    measure: &VpnMeasure,
    tell: &mut dyn FnMut(StepNote<'_>),
) -> Result<MeasuredFigures, Error> {
    let corpus = grid::shown(corpus, effort);
    let mut report = LabReport::begin(PAPER, here::codecs_stopwatch(effort))?;
    report.notes.extend(corpus.notes.iter().cloned());
    let mut steps = StepCounter::new(here::SUITES + codec::steps(corpus.files.len()), tell);
    let rates = Parameters {
        files: corpus.files.iter().map(|file| file.name.clone()).collect(),
        protections: here::suites(effort, &mut steps)?,
        codecs: codec::measured(here::codecs_stopwatch(effort), &corpus, &mut steps)?,
        ..Parameters::printed()
    };
    let grid = MeasureGrid::new(effort, &rates);
    let mut steps = StepCounter::new(grid.steps(), tell);
    let groups = ProcessorGroups::create(2);
    let mut runs = MeasureRuns { rates, corpus, groups, slow: Vec::new(), cells: Vec::new() };
    for protection in &grid.protections {
        runs.measure(&grid, *protection, measure, &mut steps)?;
    }
    Ok(runs.reported(report))
}

/// All that was measured so far.
struct MeasureRuns {
    /// This machine's rates at full speed.
    rates: Parameters,
    corpus: Corpus,
    groups: ProcessorGroups,
    /// By protection that was measured.
    slow: Vec<Slowness>,
    cells: Vec<MeasuredCell>,
}

impl MeasureRuns {
    /// Measures one protection's cells.
    fn measure(
        &mut self,
        grid: &MeasureGrid,
        protection: usize,
        measure: &VpnMeasure,
        steps: &mut StepCounter<'_>,
    ) -> Result<(), Error> {
        let name = self.rates.protections[protection].name();
        for (codec, networks) in grid.codecs() {
            steps.next(&format!("{name}, {}, hosts and daemons", self.rates.codecs[codec].name));
            let mut stage = TransportStage::set(measure, protection, codec)?;
            let slow = self.slowed(grid, protection, &mut stage)?;
            self.slow.push(slow);
            for (network, size) in networks.iter().flat_map(|network| grid.sizes.map(|size| (*network, size)))
            {
                self.row(grid, &mut stage, ParameterCell { protection, size, file: 0, network }, steps)?;
            }
        }
        Ok(())
    }

    /// A stage's ends, as slow as the paper's: a second stage of a protection is as slow as the first.
    fn slowed(
        &self,
        grid: &MeasureGrid,
        protection: usize,
        stage: &mut TransportStage,
    ) -> Result<Slowness, Error> {
        let drawn = (&self.corpus.files[0], grid.amount);
        let before = self.slow.last();
        let same = before.filter(|slow| slow.protection == protection);
        let work = match same {
            Some(slow) => slow.work,
            None => DaemonWork::measured(stage, drawn, &self.rates, protection, before.map(|it| &it.work))?,
        };
        let work = work.with_codec(stage, drawn, &self.rates, protection)?;
        self.groups.hold(&stage.daemons)?;
        if let Some(slow) = same {
            return Ok(Slowness { work, codec: stage.codec, ..*slow });
        }
        let longest = stage::contents(drawn.0, grid.sizes[1]);
        self.groups.found(stage, grid, (&self.rates, &longest), protection, work)
    }

    /// A payload over a network: without compression, and with that of each file.
    fn row(
        &mut self,
        grid: &MeasureGrid,
        stage: &mut TransportStage,
        at: ParameterCell,
        steps: &mut StepCounter<'_>,
    ) -> Result<(), Error> {
        let Some(slow) = self.slow.last() else { return Ok(()) };
        let (share, network) = (slow.share, NETWORKS[at.network]);
        let about =
            format!("{}, {}, {}", self.rates.protections[at.protection].name(), SIZES[at.size].0, network.0);
        steps.next(&format!("{about}, without compression"));
        let contents = stage::contents(&self.corpus.files[0], at.size);
        let plain = stage.run(Some(network.1), &contents, false, grid.amount, share)?;
        let mut made = Vec::new();
        for (file, source) in self.corpus.files.iter().enumerate() {
            steps.next(&format!("{about}, {}", source.name));
            let contents = stage::contents(source, at.size);
            let compressed = stage.run(Some(network.1), &contents, true, grid.amount, share)?;
            let place = ParameterCell { file, ..at };
            made.push(MeasuredCell::new(&self.rates, slow, place, [plain, compressed]));
        }
        self.cells.extend(made);
        Ok(())
    }

    fn reported(self, mut report: LabReport) -> MeasuredFigures {
        let printed = Parameters::printed();
        let [in_flight, summed] = tables::FORMS.map(|(_, form)| self.with_gains(|cell| form(cell).measured));
        report.tables = tables::all(&self.rates, &self.slow, &self.cells);
        report.claims = claims::of_speedups(&[
            (FigureSource::Computed, &printed),
            (FigureSource::Tunnel, &in_flight),
            (FigureSource::Stages, &summed),
        ]);
        report.notes.extend(notes::all(&self.groups, &self.slow, &self.cells));
        let source = "Measured with tunnels between two hosts: packets in flight, 80 % of the link's rate. DEFLATE on the \
                      two slow networks, LZS on the others.";
        let drawn = figures::papers(&in_flight, source).into_iter().map(|(_, figure)| figure);
        MeasuredFigures { report, figures: drawn.collect(), cells: self.cells }
    }

    /// The paper's cells with speedups that were measured.
    fn with_gains(&self, gain: impl Fn(&MeasuredCell) -> f64) -> Parameters {
        let papers = self.cells.iter().filter(|cell| !grid::is_todays(cell.place.protection));
        let measured = papers.map(|cell| (cell.place, gain(cell))).collect();
        Parameters { measured, ..self.rates.of_the_paper() }
    }
}

impl MeasuredCell {
    fn new(
        rates: &Parameters,
        slow: &Slowness,
        place: ParameterCell,
        [plain, compressed]: [Transaction; 2],
    ) -> MeasuredCell {
        let codec = Parameters::recommended(place);
        let at_once = Some(PipelineSize::SIMPLE);
        let speedup = |pipeline: Option<PipelineSize>, of: fn(&Transaction) -> f64| FormSpeedup {
            measured: of(&plain) / of(&compressed),
            equation: slow.gain(rates, pipeline, place, None),
            with_daemons: slow.gain(rates, pipeline, place, Some(&slow.work)),
        };
        MeasuredCell {
            place,
            protection: rates.protection(place).name(),
            compression: rates.codecs[codec].name.clone(),
            payload: SIZES[place.size].0,
            benchmark: rates.files[place.file].clone(),
            network: NETWORKS[place.network].0,
            processor_share: slow.share,
            plain,
            compressed,
            in_flight: speedup(at_once, |it| it.between_arrivals),
            one_after_another: speedup(None, Transaction::sum),
        }
    }
}

#[cfg(test)]
mod tests;
