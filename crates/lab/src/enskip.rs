//! R. Muchsel, *ENskip Performance* (1997): what it costs a file transfer to encrypt and authenticate every packet, between hosts whose
//! packet keys travel with the packets (SKIP).
//!
//! - `throughput`: the paper's table of rates, and what else it says of throughput;
//! - `latency`: its table of round trips, by the cache that has the keys;
//! - `algorithm`, `keys`, `packet`: what packets are protected with, and packets as ENskip made them;
//! - `content`, `printed`: the files that are sent, and the paper's figures.

mod algorithm;
mod content;
mod keys;
mod latency;
mod packet;
pub mod printed;
mod throughput;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use content::EnskipFile;

use crate::error::Error;
use crate::figure::Figure;
use crate::report::LabReport;
use crate::steps::{Effort, StepNote};
use latency::Latency;
use throughput::Throughput;

/// As reports name it.
const PAPER: &str = "Muchsel, ENskip Performance";

/// What is made, and with what.
#[derive(Clone, Debug)]
pub struct EnskipLab {
    /// How much.
    pub effort: Effort,
    /// Why no hosts can be made, if so: what needs them is left out then.
    pub hosts: Result<(), String>,
    /// The `strait` whose tunnels carry the file as well, if there is one.
    pub strait: Option<PathBuf>,
    /// A file in the place of the C source that is generated.
    pub file: Option<EnskipFile>,
}

/// A report, and charts.
#[derive(Clone, Debug, Serialize)]
pub struct Enskip {
    /// Tables, claims and notes.
    #[serde(flatten)]
    pub report: LabReport,
    /// Rates by algorithm and by share of a processor, round trips by cache.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

impl EnskipLab {
    /// Makes the paper's tables, and judges what it says.
    ///
    /// # Errors
    /// [`Error`] when an algorithm, a host or a daemon refuses.
    pub fn run(&self, tell: &mut dyn FnMut(StepNote<'_>)) -> Result<Enskip, Error> {
        let mut report = LabReport::begin(PAPER, throughput::timer(self.effort))?;
        report.quotes = false;
        let (mut before, after) = (0, Latency::steps(self.effort));
        let throughput = Throughput::measured(self, &mut |step| {
            before = step.of;
            tell(StepNote { of: step.of + after, ..step });
        })?;
        let latency = Latency::measured(self, &mut |step| {
            tell(StepNote { done: before + step.done, of: before + after, ..step });
        })?;
        throughput.reported(&mut report);
        latency.reported(&mut report);
        let figures = throughput.figures().into_iter().chain(latency.figures()).collect();
        Ok(Enskip { report, figures })
    }

    /// The program that runs tunnels, or why there are none.
    fn tunnels(&self) -> Result<&Path, &'static str> {
        match (&self.hosts, &self.strait) {
            (Err(_), _) => Err("no hosts can be made"),
            (_, None) => Err("there is no strait beside this program or in PATH"),
            (Ok(()), Some(program)) => Ok(program),
        }
    }
}
