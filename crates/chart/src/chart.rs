//! What is to be seen.

use crate::Axis;
use crate::drawing::Drawing;
use crate::plot;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows, above it.
    pub title: String,
    /// Where its figures come from, below it; may be empty.
    pub source: String,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn beside it.
    pub plot: Plot,
}

/// The two kinds of chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Quantities by category.
    Bars(Bars),
    /// Quantities that depend on another one.
    Lines(Lines),
}

/// Bars side by side, in clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What the bars of a cluster are, in their order; each has a colour.
    pub series: Vec<String>,
    /// The clusters from left to right.
    pub clusters: Vec<Cluster>,
}

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// What stands below it.
    pub name: String,
    /// What stands below that, once for neighbours that have the same; may be empty.
    pub section: String,
    /// The height of each bar, one a series. What cannot stand on the axis (not a number, infinite, not above zero on
    /// a logarithmic one) leaves a gap.
    pub values: Vec<f64>,
}

/// Lines between two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// The horizontal axis.
    pub x: Axis,
    /// The lines; each has a colour, or colour and dashes where there are many.
    pub lines: Vec<ChartLine>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartLine {
    /// Its name.
    pub name: String,
    /// x and y of its points in order. A point that cannot stand on the axes interrupts it; what is outside them is
    /// cut off.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// The chart, laid out: as wide as its bars need, at least 800 pixels.
    #[must_use]
    pub fn drawing(&self) -> Drawing {
        plot::drawing(self)
    }

    /// The chart with another below it, whose horizontal axis begins at the same place where both have lines.
    #[must_use]
    pub fn drawing_above(&self, lower: &Chart) -> Drawing {
        plot::stacked(self, lower)
    }
}
