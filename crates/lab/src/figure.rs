//! What a report draws.

use strait_chart::Chart;

/// A chart and the name of its file, without an extension.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Such as `figure-6`.
    pub name: String,
    /// What it shows.
    pub chart: Chart,
}
