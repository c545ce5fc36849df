//! `saved`: what tunnels have saved, from the figures that their daemons keep.

mod links;

use std::ffi::OsStr;
use std::fs;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use strait_chart::{Axis, Bars, Chart, Cluster, Plot};
use strait_node::config::Price;
use strait_node::folders::state_folder;
use strait_node::path_memory::unix_time;
use strait_node::saved::{self, SavedAmounts, SavedKind, SavedSeries};

use links::LinksReport;

use crate::configuration;
use crate::failure::{CommandResult, Failure};
use crate::flags::{self, SavedBy};
use crate::output::print;
use crate::table::TextTable;
use crate::units;

/// What the name of a file of figures ends with.
const EXTENSION: &str = "saved";
const HOUR: u64 = 3_600;
/// Bars that fit a chart.
const DRAWN: usize = 31;

/// What was saved.
#[derive(Debug, Serialize)]
struct SavedReport {
    /// The tunnel.
    interface: String,
    /// Seconds since 1970 of the first hour and of now.
    from: u64,
    to: u64,
    /// What a line is of: `peer`, `rule`, `service`, `class` or `day`.
    by: &'static str,
    lines: Vec<SavedLine>,
    /// All lines together.
    total: SavedLine,
}

/// One peer, rule, service, class or day.
#[derive(Debug, Serialize)]
struct SavedLine {
    name: String,
    #[serde(flatten)]
    amounts: SavedAmounts,
    /// Bytes of packets less wire bytes, of both directions; less than 0 where headers cost more than was saved.
    saved_bytes: i64,
    /// Its price; none where no price was named.
    saved_price: Option<f64>,
}

/// Prints what was saved, and draws it.
pub(crate) fn run(flags: &flags::Saved) -> CommandResult {
    let config = configuration::named(flags.tunnel.as_deref())?;
    let price = flags.price.or(config.as_ref().and_then(|config| config.link.price));
    let interface = match (config, &flags.tunnel) {
        (Some(config), _) => config.node.interface,
        (None, Some(name)) => name.clone(),
        (None, None) => only()?,
    };
    let path = saved::path(&interface).ok_or_else(no_folder)?;
    let series = saved::read(&path).map_err(|error| {
        Failure::new(error)
            .remedy("figures are kept once a tunnel runs; if one does, use the user who started it")
    })?;
    let to = unix_time();
    if flags.link {
        let report = LinksReport::new(interface, &series, flags.step.into(), to);
        return put(flags, &report, LinksReport::csv, |report| report.text(&TimeZone::system()));
    }
    let from = to.saturating_sub(flags.since.as_secs());
    let report = SavedReport::new(interface, &series, (from, to), (flags.by, price));
    if let Some(path) = &flags.chart {
        let svg = report.chart().drawing().svg();
        fs::write(path, svg).map_err(Failure::doing(format!("write {}", path.display())))?;
    }
    put(flags, &report, SavedReport::csv, SavedReport::text)
}

/// Prints a report in the form that the flags ask for.
fn put<T: Serialize>(
    flags: &flags::Saved,
    report: &T,
    csv: impl Fn(&T) -> String,
    text: impl Fn(&T) -> String,
) -> CommandResult {
    let out = if flags.json {
        let json = serde_json::to_string_pretty(report);
        json.map_err(|error| Failure::new(format!("cannot write the figures as JSON: {error}")))? + "\n"
    } else if flags.csv {
        csv(report)
    } else {
        text(report)
    };
    print(out.as_bytes())
}

/// A cell of comma-separated values: a name may hold commas and quotes (RFC 4180).
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn no_folder() -> Failure {
    Failure::new("there is no folder for figures").remedy("set STRAIT_STATE_DIR, or run as root")
}

/// The interface of the only tunnel of which figures are kept.
fn only() -> Result<String, Failure> {
    let folder = state_folder().ok_or_else(no_folder)?;
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries.filter_map(Result::ok).map(|entry| entry.path()).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(Failure::doing(format!("read {}", folder.display()))(error)),
    };
    let kept = |path: &std::path::PathBuf| path.extension() == Some(OsStr::new(EXTENSION));
    let name = |path: std::path::PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let mut names: Vec<String> = entries.into_iter().filter(kept).filter_map(name).collect();
    names.sort_unstable();
    match names.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Failure::new(format!("no figures are kept in {}", folder.display()))
            .remedy("they are once a tunnel runs; if one does, use the user who started it")),
        several => Err(Failure::new(format!("figures of several tunnels are kept: {}", several.join(", ")))
            .remedy("name one of them")),
    }
}

impl SavedReport {
    fn new(
        interface: String,
        series: &[SavedSeries],
        (from, to): (u64, u64),
        (by, price): (SavedBy, Option<Price>),
    ) -> SavedReport {
        let of = |kind: SavedKind| series.iter().filter(move |series| series.name().kind == kind);
        let named = |kind| {
            let amounts = |series: &SavedSeries| (series.name().name.clone(), series.between(from, to));
            let all = of(kind).map(amounts).filter(|(_, amounts)| *amounts != SavedAmounts::default());
            all.collect::<Vec<_>>()
        };
        let (by, lines): (_, Vec<(String, SavedAmounts)>) = match by {
            SavedBy::Peer => ("peer", [named(SavedKind::Peer), named(SavedKind::Control)].concat()),
            SavedBy::Rule => ("rule", named(SavedKind::Rule)),
            SavedBy::Service => ("service", by_wire_bytes(named(SavedKind::Service))),
            SavedBy::Class => ("class", named(SavedKind::Class)),
            SavedBy::Day => {
                let all: Vec<_> = of(SavedKind::Peer).chain(of(SavedKind::Control)).collect();
                ("day", days(&all, (from, to), &TimeZone::system()))
            }
        };
        let total = lines.iter().fold(SavedAmounts::default(), |sum, (_, amounts)| sum.plus(*amounts));
        let line = |(name, amounts)| SavedLine::new(name, amounts, price);
        let total = line(("total".to_owned(), total));
        SavedReport { interface, from, to, by, lines: lines.into_iter().map(line).collect(), total }
    }

    fn text(&self) -> String {
        let has_price = self.total.saved_price.is_some();
        let head = [self.by, "bytes", "on the wire", "saved", ""].into_iter();
        let mut table = TextTable::with_head(head.chain(has_price.then_some("price")).map(str::to_owned));
        for line in self.lines.iter().chain([&self.total]) {
            table.row(line.cells());
        }
        let from = day_and_hour(self.from).unwrap_or_default();
        let what = match self.by {
            "rule" => "sent in compressed blocks, before and after compression",
            "service" | "class" => {
                "packets sent, and their part of what was sent on the wire with all headers"
            }
            _ => "packets of both directions, and what they took on the wire with all headers",
        };
        format!("{}: {what}, since {from}\n\n{}", self.interface, table.render(2))
    }

    fn csv(&self) -> String {
        let mut out = format!(
            "{},sent_bytes,sent_wire_bytes,received_bytes,received_wire_bytes,saved_bytes,saved_price\n",
            self.by
        );
        for SavedLine { name, amounts, saved_bytes, saved_price } in &self.lines {
            let SavedAmounts { sent_bytes, sent_wire_bytes, received_bytes, received_wire_bytes } = amounts;
            let price = saved_price.map(|price| format!("{price:.6}")).unwrap_or_default();
            let name = quoted(name);
            out += &format!(
                "{name},{sent_bytes},{sent_wire_bytes},{received_bytes},{received_wire_bytes},{saved_bytes},{price}\n"
            );
        }
        out
    }

    fn chart(&self) -> Chart {
        let cluster = |line: &SavedLine| Cluster {
            name: line.name.clone(),
            section: String::new(),
            values: vec![line.amounts.before() as f64, line.amounts.wire() as f64],
        };
        let skipped = self.lines.len().saturating_sub(DRAWN);
        Chart {
            title: format!("{}: bytes by {}", self.interface, self.by),
            source: format!("since {}", day_and_hour(self.from).unwrap_or_default()),
            y: Axis::linear("bytes").prefixed("B"),
            plot: Plot::Bars(Bars {
                series: ["packets", "on the wire"].map(str::to_owned).to_vec(),
                clusters: self.lines.iter().skip(skipped).map(cluster).collect(),
            }),
        }
    }
}

impl SavedLine {
    /// With the price of traffic.
    fn new(name: String, amounts: SavedAmounts, price: Option<Price>) -> SavedLine {
        let saved_bytes = amounts.saved();
        SavedLine { name, amounts, saved_bytes, saved_price: price.map(|price| price.of(saved_bytes)) }
    }

    fn cells(&self) -> Vec<String> {
        let sign = if self.saved_bytes < 0 { "-" } else { "" };
        let share = match self.amounts.before() {
            0 => "-".to_owned(),
            before => format!("{:.0} %", self.saved_bytes as f64 * 100.0 / before as f64),
        };
        let mut cells = vec![
            self.name.clone(),
            units::bytes(self.amounts.before()),
            units::bytes(self.amounts.wire()),
            format!("{sign}{}", units::bytes(self.saved_bytes.unsigned_abs())),
            share,
        ];
        cells.extend(self.saved_price.map(|price| format!("{price:.2}")));
        cells
    }
}

/// Those with the most wire bytes first.
fn by_wire_bytes(mut lines: Vec<(String, SavedAmounts)>) -> Vec<(String, SavedAmounts)> {
    lines.sort_by_key(|(_, amounts)| std::cmp::Reverse(amounts.wire()));
    lines
}

/// All series by day of the time zone, the first day first.
fn days(series: &[&SavedSeries], span: (u64, u64), zone: &TimeZone) -> Vec<(String, SavedAmounts)> {
    let days = saved::by_date(series, span, zone).into_iter();
    days.map(|(date, amounts)| (date.to_string(), amounts)).collect()
}

fn day_and_hour(seconds: u64) -> Option<String> {
    local(seconds / HOUR * HOUR, &TimeZone::system(), "%Y-%m-%d %H:%M")
}

fn local(seconds: u64, zone: &TimeZone, form: &str) -> Option<String> {
    let at = Timestamp::from_second(i64::try_from(seconds).ok()?).ok()?;
    Some(at.to_zoned(zone.clone()).strftime(form).to_string())
}

#[cfg(test)]
mod tests {
    use strait_node::saved::SavedSample;

    use super::*;

    fn amounts(sent_bytes: u64, sent_wire_bytes: u64) -> SavedAmounts {
        SavedAmounts { sent_bytes, sent_wire_bytes, ..SavedAmounts::default() }
    }

    fn flags(line: &str) -> flags::Saved {
        let line = format!("strait saved {line}");
        let parsed = <flags::StraitFlags as clap::Parser>::try_parse_from(line.split_whitespace()).unwrap();
        match parsed.command {
            flags::StraitCommand::Saved(flags) => flags,
            other => panic!("{other:?}"),
        }
    }

    /// Two peers over three days and a rule.
    fn series() -> (Vec<SavedSeries>, (u64, u64)) {
        let noon = 20_000 * 86_400 + 12 * HOUR;
        let mut all = vec![
            SavedSeries::new(SavedKind::Peer, "site-b"),
            SavedSeries::new(SavedKind::Peer, "a \"site\", far"),
            SavedSeries::new(SavedKind::Rule, "10.0.0.0/8 to 10.1.0.0/16 tcp 80 (office)"),
        ];
        for day in 0..3 {
            for (series, sent) in all.iter_mut().zip([1_000_000, 1_000, 500_000]) {
                let minute = SavedSample { amounts: amounts(sent, 400_000), ..SavedSample::default() };
                series.add(noon + day * 86_400, &minute);
            }
        }
        (all, (noon - 86_400, noon + 3 * 86_400))
    }

    #[test]
    fn lines_are_of_peers_rules_and_days_and_money_follows_the_price() {
        let (series, span) = series();
        let report = |line| {
            let flags = flags(line);
            SavedReport::new("strait0".to_owned(), &series, span, (flags.by, flags.price))
        };
        let peers = report("--price 8/GB");
        let text = peers.text();
        for words in ["site-b", "3.00 MB", "1.20 MB", "1.80 MB", "60 %", "-1.20 MB", "0.01"] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
        let days = report("--by day");
        assert_eq!(days.lines.len(), 3);
        assert!(days.lines.iter().all(|line| line.amounts.sent_bytes.abs_diff(1_001_000) < 2_000));
        let rules = report("--by rule");
        assert_eq!(rules.lines.len(), 1);
        assert!(rules.text().contains("tcp 80 (office)"));
        assert!(peers.csv().contains("\"a \"\"site\"\", far\","), "{}", peers.csv());
        assert!(peers.chart().drawing().svg().starts_with("<svg"));
        let json = serde_json::to_value(&peers).unwrap();
        assert!(
            json["total"]["saved_bytes"].as_i64().unwrap() > 0
                && json["lines"][1]["saved_bytes"].as_i64().unwrap() < 0
        );
    }

    #[test]
    fn days_are_those_of_the_time_zone() {
        let mut series = SavedSeries::new(SavedKind::Peer, "site-b");
        let evening = 20_000 * 86_400 + 22 * HOUR;
        series.add(evening, &SavedSample { amounts: amounts(9, 9), ..SavedSample::default() });
        let day = |hours| {
            let zone = TimeZone::fixed(jiff::tz::offset(hours));
            days(&[&series], (evening, evening), &zone)[0].0.clone()
        };
        assert_eq!([day(0), day(3)], ["2024-10-04", "2024-10-05"]);
    }
}
