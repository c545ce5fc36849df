//! Classes of traffic in columns, and what codecs make of them.

use strait_advise::report::{AdviseVerdict, ClassGroup, ClassReport, CodecShare, CodecTrial, UpTo, WireUse};
use strait_advise::{AdviseReport, TunnelVariant};
use strait_compress::Codec;

use super::amounts::{dash, money, percent, time, up_to};
use super::content::{can_say, wire};
use crate::table::{Side, TextTable};
use crate::units;

/// Classes of one kind that are shown; the JSON document has all.
pub(super) const SHOWN: usize = 10;
/// Services whose codecs are shown.
const COMPARED: usize = 5;
/// What the figures of codecs are.
pub(super) const SAMPLING: [&str; 2] = [
    "packet: ratio of single packets; block: ratio of packets compressed together; break-even: link rate up to which that pays, \
     with this machine at both ends.",
    "Sample: of each service and pair the first 64 KiB, then 1 byte in 16, at most 4 MiB; where the data is not compressed, 16 KiB \
     and 1 in 1,024.",
];

/// The kinds of class, with what they are called.
pub(super) fn kinds(report: &AdviseReport) -> [(&'static str, &ClassGroup); 3] {
    [("protocol", &report.protocols), ("service", &report.services), ("pair of hosts", &report.pairs)]
}

/// Which columns there are besides those that are always there.
#[derive(Clone, Copy)]
struct ClassColumns {
    money: bool,
    waits: bool,
}

/// The largest classes of one kind.
pub(super) fn classes(head: &str, group: &ClassGroup, report: &AdviseReport) -> TextTable {
    let columns = ClassColumns { money: report.link.price_per_gigabyte.is_some(), waits: waits(group) };
    let names = [head, "packets", "bytes"].into_iter().chain(TunnelVariant::ALL.map(TunnelVariant::name));
    let names = names.chain(["saved", "time saved"]).chain(columns.money.then_some("money saved"));
    let names = names.chain(columns.waits.then_some("RTT wait")).chain(["break-even", "methods"]);
    let names: Vec<String> = names.map(str::to_owned).collect();
    let last = names.len() - 1;
    let mut table = TextTable::with_head(names).side(last, Side::Left);
    for class in group.classes.iter().take(SHOWN) {
        table.row(row(class, columns));
    }
    table
}

/// The largest services in few columns, beside a link without a tunnel.
pub(super) fn services(report: &AdviseReport) -> TextTable {
    let mut table =
        TextTable::new(["service", "packets", "bytes now", "with Strait", "change", "pays up to"]);
    for class in report.services.classes.iter().take(SHOWN) {
        let best = best(class);
        let (now, with) = (class.bytes, wire(class, best));
        let sign = if with > now { "+" } else { "-" };
        let change = percent(with.abs_diff(now) as f64, now as f64);
        table.row([
            class.name.clone(),
            class.packets.to_string(),
            units::bytes(now),
            units::bytes(with),
            format!("{sign}{change}"),
            pays(class),
        ]);
    }
    table
}

/// The fastest link that compression of a class pays on.
fn pays(class: &ClassReport) -> String {
    up_to(if class.verdict == AdviseVerdict::Compression { class.break_even } else { UpTo::Never })
}

/// The way with the most savings that anything can be said of.
fn best(class: &ClassReport) -> TunnelVariant {
    if can_say(class, TunnelVariant::History) { TunnelVariant::History } else { TunnelVariant::Contexts }
}

/// Whether it is known how long hosts wait for each other.
fn waits(group: &ClassGroup) -> bool {
    group.classes.iter().any(|class| class.waits.is_some_and(|waits| waits.seconds.is_some()))
}

/// What is not in the table, or not plain from it.
pub(super) fn rest(group: &ClassGroup) -> Option<String> {
    let more = group.classes.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("and {more} more (see --json)"));
    let others = group.others.as_ref().map(|others| {
        let bytes = units::bytes(others.total.bytes);
        format!("and {bytes} of {} smaller classes, merged", others.count)
    });
    let waits = waits(group).then(|| {
        "RTT wait: half an RTT for each turn of the conversation, which smaller packets do not shorten"
            .to_owned()
    });
    let parts: Vec<String> = more.into_iter().chain(others).chain(waits).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn row(class: &ClassReport, columns: ClassColumns) -> Vec<String> {
    let ends = class.on(TunnelVariant::Plain).zip(class.on(best(class)));
    let saved = |part: fn(&WireUse) -> f64| ends.map_or(0.0, |(plain, best)| part(plain) - part(best));
    let bytes = saved(|sent| sent.wire_bytes as f64);
    let mut cells = vec![class.name.clone(), class.packets.to_string(), units::bytes(class.bytes)];
    let figures = |way| if can_say(class, way) { units::bytes(wire(class, way)) } else { dash() };
    cells.extend(TunnelVariant::ALL.map(figures));
    cells.push(percent(bytes, wire(class, TunnelVariant::Plain) as f64));
    cells.push(time(saved(|sent| sent.link_busy_seconds)));
    if columns.money {
        cells.push(money(saved(|sent| sent.cost.unwrap_or(0.0))));
    }
    if columns.waits {
        cells.push(class.waits.and_then(|waits| waits.seconds).map_or_else(dash, time));
    }
    cells.extend([pays(class), chosen(class)]);
    cells
}

/// What the chooser did, the most first.
fn chosen(class: &ClassReport) -> String {
    match class.verdict {
        AdviseVerdict::NotCaptured => return "not captured".to_owned(),
        AdviseVerdict::Nothing => return "no gain".to_owned(),
        AdviseVerdict::Aggregation => return "aggregation only".to_owned(),
        AdviseVerdict::Empty | AdviseVerdict::Compression => {}
    }
    let named = |share: &&CodecShare| share.method.codec != Codec::None && share.bytes * 100 >= class.bytes;
    let words =
        |share: &CodecShare| format!("{} {}", share.method, percent(share.bytes as f64, class.bytes as f64));
    class.chosen.iter().filter(named).take(2).map(words).collect::<Vec<_>>().join(", ")
}

/// The whole and the largest services that codecs were tried on.
pub(super) fn compared(report: &AdviseReport) -> Vec<&ClassReport> {
    let tried =
        |class: &&ClassReport| !class.codecs.is_empty() && class.verdict != AdviseVerdict::NotCaptured;
    let services = report.services.classes.iter().take(COMPARED);
    std::iter::once(&report.total).chain(services).filter(tried).collect()
}

/// What each codec makes of them.
pub(super) fn codecs(classes: &[&ClassReport]) -> Option<TextTable> {
    let methods = classes.first()?.codecs.iter().map(|tried| tried.method.to_string());
    let head = ["class", "ratio"].map(str::to_owned).into_iter().chain(methods).chain(["sample".to_owned()]);
    let mut table = TextTable::with_head(head).side(1, Side::Left);
    for class in classes {
        let mut line = |name: &str, what: &str, cell: fn(&CodecTrial) -> String, sample: String| {
            let cells = [name.to_owned(), what.to_owned()].into_iter().chain(class.codecs.iter().map(cell));
            table.row(cells.chain([sample]));
        };
        line(
            &class.name,
            "packet",
            |tried| format!("{:.2}", tried.packet_ratio),
            units::bytes(class.sampled_bytes),
        );
        line("", "block", |tried| format!("{:.2}", tried.block_ratio), String::new());
        line("", "break-even", |tried| up_to(tried.break_even), String::new());
    }
    Some(table)
}
