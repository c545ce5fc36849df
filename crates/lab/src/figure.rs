//! What a report draws.

use strait_chart::{Chart, Drawing};

/// A chart and the name of its file, without an extension.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Such as `figure-6`.
    pub name: String,
    /// What it shows.
    pub chart: Chart,
    /// What stands below it, if there is more than one chart to see.
    pub below: Option<Chart>,
}

impl Figure {
    /// A figure of one chart.
    pub(crate) fn new(name: impl Into<String>, chart: Chart) -> Figure {
        Figure { name: name.into(), chart, below: None }
    }

    /// It, laid out.
    #[must_use]
    pub fn drawing(&self) -> Drawing {
        self.below.as_ref().map_or_else(|| self.chart.drawing(), |below| self.chart.drawing_above(below))
    }
}
