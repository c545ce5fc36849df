//! The page: sections that are complete as they are, and what a script needs to bring them up to date.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::html::escaped;
use super::sections::{self, Earlier, WireBytes};
use super::{charts, html};
use crate::report::DaemonReport;
use crate::saved::SavedFigures;

/// The style of the page, and its script.
pub(super) const STYLE: &str = include_str!("style.css");
pub(super) const SCRIPT: &str = include_str!("live.js");

/// A rate is a difference of counters that are at most this far apart: what was long ago says nothing of now.
const RATE_SPAN: Duration = Duration::from_secs(30);
/// How often a browser without a script asks again, in seconds.
const AGAIN: u32 = 5;
/// How soon a browser asks for another stream of events when one has ended, in milliseconds.
const RETRY: u32 = 1_000;

/// The sections, in their order: the name of each, and its heading.
const SECTIONS: [(&str, &str); 9] = [
    ("node", "Node"),
    ("saved", "Saved"),
    ("link", "Link"),
    ("queue", "Queue"),
    ("flows", "Flows"),
    ("services", "Sent by service"),
    ("drops", "Drops"),
    ("day", "The last day"),
    ("month", "The last month"),
];

/// The charts, which change with the figures and not with the report.
#[derive(Clone, Debug)]
struct Charts {
    of: Option<Arc<SavedFigures>>,
    day: String,
    month: String,
}

/// What the node was like at a moment.
#[derive(Debug)]
pub(super) struct Page {
    /// When it was made.
    pub(super) made: Instant,
    interface: String,
    /// The content of each section.
    sections: [String; SECTIONS.len()],
    wire: WireBytes,
    charts: Charts,
}

/// The sections that changed, by their names, as a script takes them.
#[derive(Debug, Serialize)]
struct Changed<'a>(std::collections::BTreeMap<&'static str, &'a str>);

impl Page {
    /// The page of now; the one before tells the rates, and has the charts if they are the same.
    pub(super) fn new(
        report: &DaemonReport,
        figures: Option<Arc<SavedFigures>>,
        before: Option<&Page>,
        made: Instant,
    ) -> Page {
        let earlier = before.and_then(|page| {
            let span = made.duration_since(page.made);
            (span <= RATE_SPAN).then_some(Earlier { wire: &page.wire, span })
        });
        let charts = match before {
            Some(page) if is_same(page.charts.of.as_ref(), figures.as_ref()) => page.charts.clone(),
            _ => Charts::of(figures.clone()),
        };
        let sections = [
            sections::node(report),
            sections::saved(report, figures.as_deref()),
            sections::link(report, earlier),
            sections::queue(report),
            sections::flows(report),
            sections::services(report),
            sections::drops(report),
            charts.day.clone(),
            charts.month.clone(),
        ];
        Page {
            made,
            interface: report.node.interface.clone(),
            sections,
            wire: sections::wire_bytes(report),
            charts,
        }
    }

    /// All of it as HTML.
    pub(super) fn html(&self) -> String {
        let name = escaped(&self.interface);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{name}: Strait</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"style.css\">\n\
             <script src=\"live.js\" defer></script>\n\
             <noscript><meta http-equiv=\"refresh\" content=\"{AGAIN}\"></noscript>\n</head>\n<body>\n\
             <h1>{name} <span id=\"state\"></span></h1>\n"
        );
        for ((id, heading), content) in SECTIONS.iter().zip(&self.sections) {
            out += &format!("<h2>{heading}</h2>\n<div id=\"{id}\">\n{content}</div>\n");
        }
        out + "</body>\n</html>\n"
    }

    /// An event with the sections that are not as in `before`; a comment where all are, which says that the node is there.
    pub(super) fn event(&self, before: Option<&Page>) -> String {
        let names = SECTIONS.iter().map(|(id, _)| *id);
        let changed = names.zip(&self.sections).enumerate().filter(|(at, (_, content))| {
            before.is_none_or(|before| before.sections.get(*at) != Some(*content))
        });
        let changed = Changed(changed.map(|(_, (id, content))| (id, content.as_str())).collect());
        match serde_json::to_string(&changed) {
            // JSON has no line ends, which would end the event.
            Ok(json) if before.is_none() => format!("retry: {RETRY}\ndata: {json}\n\n"),
            Ok(json) if !changed.0.is_empty() => format!("data: {json}\n\n"),
            _ => ":\n\n".to_owned(),
        }
    }
}

impl Charts {
    fn of(figures: Option<Arc<SavedFigures>>) -> Charts {
        let none = || html::paragraph("No figures are kept.");
        let day = figures.as_deref().map_or_else(none, charts::day);
        let month = figures.as_deref().map_or_else(none, charts::month);
        Charts { of: figures, day, month }
    }
}

fn is_same(one: Option<&Arc<SavedFigures>>, other: Option<&Arc<SavedFigures>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}
