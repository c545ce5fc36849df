//! The model against the tunnel: real daemons in two namespaces over a grid of links, blocks, data and methods; the
//! goodput of each beside what the model says, and whether the tunnel's own choice is the best there is.
//!
//! Both ends share this machine's processors, and the model is told so. What it is given: how long codecs take here
//! on this data, what the tunnel takes a byte without compressing, how far the data shrank and in how large blocks.
//! What it says: how many times faster than without.

mod content;
mod finding;
mod grid;
mod predict;
mod run;

use std::path::Path;

use strait_scheduler::Rate;
use strait_testbed::{Extra, LinkSpec, TestTunnel, interrupt};

use crate::error::Error;
use crate::measure::{MachineInfo, settle};
use crate::steps::{StepCounter, StepNote};

pub use content::Content;
pub use finding::{FindingCell, FindingSummary, MethodResult, Pick, PredictionErrors, Verification};
pub use grid::VerifyGrid;
pub use run::Work;

use finding::DISTURBED;
use grid::{BLOCK, GridPlace};
use predict::MethodTimes;
use run::{CompressionSetting, StreamResult};

/// The rate at which a link is shaped and still does not limit.
const FULL: u64 = 20_000_000_000;

/// Runs the grid with `program` at both ends; `tell` is told of every run.
///
/// # Errors
/// [`Error::Testbed`] when hosts, links or daemons fail, or on a signal; [`Error::Refused`] when a codec does.
pub fn verify(
    program: &Path,
    grid: &VerifyGrid,
    tell: &mut dyn FnMut(StepNote<'_>),
) -> Result<Verification, Error> {
    let machine = MachineInfo::this();
    let mut steps = StepCounter::new(grid.runs() + 2, tell);
    let codecs = codecs(grid)?;
    let unshaped = full_tilt(program, grid, None, &mut steps)?;
    let shaped = full_tilt(program, grid, Rate::from_bits(FULL), &mut steps)?;
    let mut cells = Vec::new();
    for place in grid.places() {
        let link = place.link.and_then(|rate| strait_model::BitRate::bits(rate.bits() as f64));
        let work = if place.link.is_some() { shaped } else { unshaped };
        let model = predict::PlainTunnelTimes { link, work, processors: machine.cores };
        let measured = measure(program, grid, &place, &mut steps)?;
        cells.extend(measured.iter().zip(&grid.contents).zip(&codecs).map(|((rounds, content), codecs)| {
            FindingCell::new(grid, &place, content, codecs, rounds, &model)
        }));
    }
    Ok(Verification::new(machine, [unshaped, shaped], cells))
}

/// What every method takes on every content, a list a content.
fn codecs(grid: &VerifyGrid) -> Result<Vec<Vec<MethodTimes>>, Error> {
    let of = |content| grid.methods.iter().map(|method| MethodTimes::timed(*method, content)).collect();
    grid.contents.iter().map(of).collect()
}

/// What is done for each byte without compression where nothing but the processors limits.
fn full_tilt(
    program: &Path,
    grid: &VerifyGrid,
    link: Option<Rate>,
    steps: &mut StepCounter<'_>,
) -> Result<Work, Error> {
    let place = GridPlace::new(link, BLOCK, grid.effort());
    let tunnel = open(program, grid, &place)?;
    steps.next("full tilt");
    Ok(undisturbed(place.attempts, || run::run(&tunnel, grid, &place, 0, CompressionSetting::Plain))?.work)
}

fn open(program: &Path, grid: &VerifyGrid, place: &GridPlace) -> Result<TestTunnel, Error> {
    let spec = place.link.map_or(LinkSpec::unshaped(), LinkSpec::thin);
    let (node, rules) = (format!("block = {}", place.block), run::rules(grid));
    Ok(TestTunnel::open(program, spec, Extra { node: &node, sections: &rules, ..Extra::default() })?)
}

/// What was seen of every way in every round.
type Rounds = Vec<Vec<StreamResult>>;

/// Everything that is measured through one tunnel, by content.
fn measure(
    program: &Path,
    grid: &VerifyGrid,
    place: &GridPlace,
    steps: &mut StepCounter<'_>,
) -> Result<Vec<Rounds>, Error> {
    let tunnel = open(program, grid, place)?;
    let mut stream = |content: usize, way: CompressionSetting| -> Result<StreamResult, Error> {
        steps.next(&format!("{place}, {}, {}", grid.contents[content].name, way.name(grid)));
        let once = || {
            let seen = run::run(&tunnel, grid, place, content, way)?;
            interrupt::pause(place.drain())?;
            Ok(seen)
        };
        undisturbed(place.attempts, once)
    };
    let mut round = |content: usize| CompressionSetting::all(grid).map(|way| stream(content, way)).collect();
    (0..grid.contents.len()).map(|content| (0..place.rounds).map(|_| round(content)).collect()).collect()
}

/// A run that others disturbed little, or else the one of some that they disturbed least.
fn undisturbed(
    attempts: usize,
    mut once: impl FnMut() -> Result<StreamResult, Error>,
) -> Result<StreamResult, Error> {
    let mut best = once()?;
    for _ in 1..attempts {
        if best.others < DISTURBED {
            break;
        }
        settle()?;
        let again = once()?;
        if again.others < best.others {
            best = again;
        }
    }
    Ok(best)
}
