//! What a report says to people, as sentences and tables; without layout.

use strait_advise::report::{AdviseVerdict, ClassReport, Input, UpTo};
use strait_advise::{AdviseReport, CaptureKind, TunnelVariant};

use super::amounts::{dash, money, percent, rate, time};
use crate::table::{Side, TextTable};
use crate::units;

/// What part of the wire bytes with history a byte cache has to save to be recommended: as every gain that a verdict names.
const CACHE_WORTH: f64 = 0.01;
/// What stands above the table of policies.
pub(super) const POLICIES: &str =
    "aggregation and compression under policies against length leaks, all traffic in one domain";

/// The files.
pub(super) fn inputs(report: &AdviseReport) -> TextTable {
    let mut table = TextTable::new(["input", "type", "frames"]).side(1, Side::Left);
    for Input { name, kind, frames, .. } in &report.inputs {
        let kind = kind.map_or("unknown", |kind| kind.name());
        table.row([name.clone(), kind.to_owned(), frames.to_string()]);
    }
    table
}

/// What of it is left out or taken for something.
pub(super) fn notes(report: &AdviseReport) -> Vec<String> {
    let seen = &report.frames;
    let counted = [
        (seen.not_ip, "not IP: a tunnel does not carry them"),
        (seen.malformed, "malformed IP packet"),
        (seen.not_routed, "to several hosts, or of one link only: no tunnel between networks carries them"),
        (seen.not_crossing, "not between the near and the far side"),
        (seen.segmented, "longer than the MTU (segmentation offload): split"),
        (seen.out_of_order, "out of order in time"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    let mut notes: Vec<String> =
        counted.map(|(count, words)| format!("{}: {words}", units::counted(count, "frame"))).collect();
    let packed = report.inputs.iter().filter(|input| input.kind == Some(CaptureKind::Packed));
    notes.extend(packed.map(|input| {
        format!("{} is a compressed file: if it contains a capture, decompress it first", input.name)
    }));
    let missed = report.inputs.iter().map(|input| input.dropped_frames).sum::<u64>();
    if missed > 0 {
        notes.push(format!(
            "{} dropped by the kernel: they arrived too fast",
            units::counted(missed, "frame")
        ));
    }
    let (missing, bytes) = (report.total.not_captured_bytes, report.total.bytes);
    if missing > 0 {
        let [missing, bytes] = [missing, bytes].map(units::bytes);
        notes.push(format!("{missing} of {bytes} were not captured; they are taken as incompressible"));
    }
    notes
}

/// How much there is.
pub(super) fn extent(report: &AdviseReport) -> String {
    format!(
        "{}, {} over a link of {}; duration {} (gaps cut to 1 s)",
        units::counted(report.total.packets, "packet"),
        units::bytes(report.total.bytes),
        rate(report.link.rate_bits_per_second as f64),
        time(report.duration_seconds)
    )
}

/// The ways that are shown where not all are.
const SHORT: [(&str, TunnelVariant); 3] = [
    ("plain tunnel", TunnelVariant::Plain),
    ("Strait", TunnelVariant::History),
    ("Strait, byte cache", TunnelVariant::Cache),
];

/// The whole on every way, or on those that matter most, beside a link without a tunnel.
pub(super) fn whole(report: &AdviseReport, all: bool) -> TextTable {
    let class = &report.total;
    let price = report.link.price_per_gigabyte;
    let head = ["", "wire bytes", "of plain tunnel", "link busy"].into_iter().chain(price.map(|_| "cost"));
    let mut table = TextTable::with_head(head.map(str::to_owned));
    let plain = wire(class, TunnelVariant::Plain);
    let mut row = |name: &str, bytes: Option<u64>| {
        let busy = |bytes: u64| time(bytes as f64 * 8.0 / report.link.rate_bits_per_second as f64);
        let cells = [
            bytes.map(units::bytes),
            bytes.map(|bytes| percent(bytes as f64, plain as f64)),
            bytes.map(busy),
        ];
        let cost = price.map(|price| bytes.map(|bytes| money(price * bytes as f64 / 1e9)));
        let cells = cells.into_iter().chain(cost).map(|cell| cell.unwrap_or_else(dash));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    row("no tunnel", Some(class.bytes));
    let ways = if all { TunnelVariant::ALL.map(|way| (name(way), way)).to_vec() } else { SHORT.to_vec() };
    for (name, way) in ways {
        row(name, can_say(class, way).then(|| wire(class, way)));
    }
    table
}

/// What goes back for it, which no class has.
pub(super) fn returned(report: &AdviseReport) -> String {
    format!(
        "Delivery reports, receipts and signs of life take {} more in both directions; {} with history.",
        units::bytes(back(report, TunnelVariant::Plain)),
        units::bytes(back(report, TunnelVariant::History))
    )
}

fn back(report: &AdviseReport, way: TunnelVariant) -> u64 {
    report.returned.iter().find(|back| back.way == way).map_or(0, |back| back.wire_bytes)
}

/// Compares the bytes and the money with those of today, without a tunnel, in a sentence: the first question that a person has.
pub(super) fn today(report: &AdviseReport) -> Option<String> {
    let class = &report.total;
    if class.verdict == AdviseVerdict::Empty {
        return None;
    }
    let all = |way| wire(class, way) + back(report, way);
    let ways = [TunnelVariant::History, TunnelVariant::Contexts];
    let with = ways.into_iter().filter(|way| can_say(class, *way)).map(all).min()?;
    let now = class.bytes;
    let cost = report.link.price_per_gigabyte.map_or(String::new(), |price| {
        let [with, now] = [with, now].map(|bytes| money(price * bytes as f64 / 1e9));
        format!(" ({with} instead of {now})")
    });
    let unsaid = if can_say(class, TunnelVariant::History) { "" } else { ", without compression," };
    let change = percent(with.abs_diff(now) as f64, now as f64);
    let [shown, shown_now] = [with, now].map(units::bytes);
    let instead = format!("{shown} instead of {shown_now}{cost}");
    Some(if with.abs_diff(now) as f64 * 100.0 < now as f64 {
        format!("With Strait{unsaid} about as many bytes as now: {instead}.")
    } else if with < now {
        format!("With Strait{unsaid} {change} fewer bytes than now: {instead}.")
    } else {
        format!(
            "With Strait{unsaid} {change} more bytes than now: {instead}. A tunnel costs more here than it saves: have none where \
             neither encryption nor a network of your own is needed. With `hold` in `[link]`, more packets share a datagram."
        )
    })
}

/// What policies against length leaks cost, if they were compared.
pub(super) fn policies(report: &AdviseReport) -> TextTable {
    let head = ["padding", "mix", "pause", "wire bytes", "of plain tunnel", "pauses", "paused packets"];
    let mut table = TextTable::new(head);
    for column in 1..=2 {
        table = table.side(column, Side::Left);
    }
    let plain = wire(&report.total, TunnelVariant::Plain);
    for cost in &report.policies {
        table.row([
            cost.padding.to_owned(),
            cost.mix.to_owned(),
            if cost.pause { "on" } else { "off" }.to_owned(),
            units::bytes(cost.wire_bytes),
            percent(cost.wire_bytes as f64, plain as f64),
            cost.pauses.to_string(),
            cost.paused_packets.to_string(),
        ]);
    }
    table
}

/// Says in a sentence or two how much there is to be gained against a plain tunnel.
pub(super) fn verdict(report: &AdviseReport) -> String {
    let class = &report.total;
    let [plain, bundles] = [TunnelVariant::Plain, TunnelVariant::Contexts].map(|way| wire(class, way) as f64);
    let by_aggregation = format!("Aggregation and coded headers save {}.", percent(plain - bundles, plain));
    let words = match class.verdict {
        AdviseVerdict::Empty => "No packet would cross the link: there is nothing to estimate.".to_owned(),
        AdviseVerdict::NotCaptured => {
            format!("Most bytes were not captured: the gain of compression is unknown. {by_aggregation}")
        }
        AdviseVerdict::Nothing => {
            "No gain: the data is incompressible (encrypted or compressed already), and at this rate too few packets \
            are queued for aggregation."
                .to_owned()
        }
        AdviseVerdict::Aggregation => format!(
            "No gain from compression: the data is incompressible (encrypted or compressed already). {by_aggregation}"
        ),
        AdviseVerdict::Compression => gains(report),
    };
    if can_say(class, TunnelVariant::Cache) { words + &repeats(class) } else { words }
}

fn gains(report: &AdviseReport) -> String {
    let class = &report.total;
    let (Some(plain), Some(both)) = (class.on(TunnelVariant::Plain), class.on(TunnelVariant::History)) else {
        return String::new();
    };
    let less = plain.wire_bytes.saturating_sub(both.wire_bytes);
    let mut words = format!(
        "Aggregation, compression and history save {} of the wire bytes of a plain tunnel: {}, {} of link time",
        percent(less as f64, plain.wire_bytes as f64),
        units::bytes(less),
        time(plain.link_busy_seconds - both.link_busy_seconds)
    );
    if let (Some(before), Some(after)) = (plain.cost, both.cost) {
        words += &format!(", {} of {}", money(before - after), money(before));
    }
    words += &match class.break_even {
        UpTo::Rate(bits) => {
            format!(". With the speed of this machine, compression pays on links up to {}.", rate(bits))
        }
        UpTo::Always => ". With the speed of this machine, compression pays on any link.".to_owned(),
        UpTo::Never => ".".to_owned(),
    };
    words
}

/// What a byte cache saves besides, where that is worth a word: it is off unless a rule names it, as it tells more to who can guess.
fn repeats(class: &ClassReport) -> String {
    let [without, with] = [TunnelVariant::History, TunnelVariant::Cache].map(|way| wire(class, way));
    let less = without.saturating_sub(with);
    if less == 0 || (less as f64) < CACHE_WORTH * without as f64 {
        return String::new();
    }
    format!(
        " Some of it crosses again: a byte cache (`cache` in a rule) saves {} of the rest, {}.",
        percent(less as f64, without as f64),
        units::bytes(less)
    )
}

/// Whether there are figures: the compression of bytes that were not captured is unknown.
pub(super) fn can_say(class: &ClassReport, way: TunnelVariant) -> bool {
    class.verdict != AdviseVerdict::NotCaptured || !way.compresses()
}

/// Bytes on the wire on one way.
pub(super) fn wire(class: &ClassReport, way: TunnelVariant) -> u64 {
    class.on(way).map_or(0, |sent| sent.wire_bytes)
}

/// A way in words.
pub(super) const fn name(way: TunnelVariant) -> &'static str {
    match way {
        TunnelVariant::Plain => "plain tunnel",
        TunnelVariant::Bundles => "with aggregation",
        TunnelVariant::Compression => "with compression",
        TunnelVariant::Both => "with both",
        TunnelVariant::Contexts => "aggregation, headers against earlier ones",
        TunnelVariant::History => "both, with history",
        TunnelVariant::Cache => "both, with history and a byte cache",
    }
}

/// The words before the rules.
pub(super) const RULES: &str = "Without rules nothing is compressed. To compress what pays here, paste these into the \
    configuration of both ends. Each service has a trust domain of its own.";

/// The rules, as a configuration has them; empty if there are none.
pub(super) fn rules(report: &AdviseReport) -> String {
    report
        .rules
        .iter()
        .map(|rule| format!("# {}\n{}", rule.service, rule.toml))
        .collect::<Vec<_>>()
        .join("\n")
}
