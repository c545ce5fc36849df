//! Charts: one description, drawn as SVG and as PNG. Bars about a line of reference, and lines between two axes.
//!
//! A [`Chart`] says what is to be seen. [`Chart::drawing`] lays it out once, as rectangles, lines and words, and the
//! [`Drawing`] renders to both forms, so they cannot differ. No font of the system is needed: the PNG has its letters
//! from a font that is built in, the SVG asks for any font whose letters have the same width.
//!
//! ```
//! use strait_chart::{Axis, Bars, Chart, Cluster, Plot};
//!
//! let clusters = vec![Cluster { name: "1 KiB".into(), section: "book1".into(), values: vec![1.4, 0.7] }];
//! let chart = Chart {
//!     title: "Speedup when compressing".into(),
//!     source: "computed from measured rates".into(),
//!     y: Axis::logarithmic("speedup").at(1.0),
//!     plot: Plot::Bars(Bars { series: vec!["10 Mbit/s".into(), "1 Gbit/s".into()], clusters }),
//! };
//! let drawing = chart.drawing();
//! assert!(drawing.svg().starts_with("<svg"));
//! assert!(drawing.png().starts_with(b"\x89PNG"));
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod axis;
mod chart;
mod drawing;
mod letters;
mod plot;
mod png;
mod raster;
mod svg;

pub use axis::Axis;
pub use chart::{Bars, Chart, ChartLine, Cluster, Lines, Plot};
pub use drawing::Drawing;
