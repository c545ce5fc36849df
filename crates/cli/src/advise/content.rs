//! What a report says to people, as sentences and tables; how they look is for whoever shows them.

use strait_advise::report::{Class, Input, UpTo, Verdict};
use strait_advise::{Kind, Report, Way};

use super::amounts::{dash, money, percent, rate, time};
use crate::table::{Side, Table};
use crate::units;

/// The files.
pub(super) fn inputs(report: &Report) -> Table {
    let mut table = Table::new(["read", "", ""]).side(1, Side::Left);
    for Input { name, kind, frames, .. } in &report.inputs {
        let kind = kind.map_or("nothing", |kind| kind.name());
        table.row([name.clone(), kind.to_owned(), units::counted(*frames, "frame")]);
    }
    table
}

/// What of it is left out or taken for something.
pub(super) fn notes(report: &Report) -> Vec<String> {
    let seen = &report.seen;
    let counted = [
        (seen.not_ip, "not IP, which no tunnel takes"),
        (seen.malformed, "no whole IP packet"),
        (seen.elsewhere, "not between the near side and the far one"),
        (seen.cut, "longer than hosts send: cut, as the card had joined them"),
        (seen.backwards, "earlier than the one before"),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    let mut notes: Vec<String> =
        counted.map(|(count, words)| format!("{}: {words}", units::counted(count, "frame"))).collect();
    let packed = report.inputs.iter().filter(|input| input.kind == Some(Kind::Packed));
    notes.extend(
        packed.map(|input| format!("{} was compressed: if a capture is in it, unpack it first", input.name)),
    );
    let missed = report.inputs.iter().map(|input| input.missed).sum::<u64>();
    if missed > 0 {
        notes.push(format!("{} passed too fast to be read", units::counted(missed, "frame")));
    }
    let (missing, bytes) = (report.whole.missing, report.whole.bytes);
    if missing > 0 {
        let [missing, bytes] = [missing, bytes].map(units::bytes);
        notes.push(format!("{missing} of {bytes} were not captured, and are taken as what does not shrink"));
    }
    notes
}

/// How much there is.
pub(super) fn extent(report: &Report) -> String {
    format!(
        "{}, {} over {}; {} with gaps cut to a second",
        units::counted(report.whole.packets, "packet"),
        units::bytes(report.whole.bytes),
        rate(report.link.bits_per_second as f64),
        time(report.seconds)
    )
}

/// The whole on every way, beside a link without a tunnel.
pub(super) fn whole(report: &Report) -> Table {
    let class = &report.whole;
    let price = report.link.price_per_gigabyte;
    let head = ["sent", "on the wire", "of plain", "link busy"].into_iter().chain(price.map(|_| "cost"));
    let mut table = Table::with_head(head.map(str::to_owned));
    let plain = wire(class, Way::Plain);
    let mut row = |name: &str, bytes: Option<u64>| {
        let busy = |bytes: u64| time(bytes as f64 * 8.0 / report.link.bits_per_second as f64);
        let cells = [
            bytes.map(units::bytes),
            bytes.map(|bytes| percent(bytes as f64, plain as f64)),
            bytes.map(busy),
        ];
        let cost = price.map(|price| bytes.map(|bytes| money(price * bytes as f64 / 1e9)));
        let cells = cells.into_iter().chain(cost).map(|cell| cell.unwrap_or_else(dash));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    row("without a tunnel", Some(class.bytes));
    for way in Way::ALL {
        row(name(way), can_say(class, way).then(|| wire(class, way)));
    }
    table
}

/// What is to be gained, in a sentence or two.
pub(super) fn verdict(report: &Report) -> String {
    let class = &report.whole;
    let [plain, bundles] = [Way::Plain, Way::Bundles].map(|way| wire(class, way) as f64);
    let by_bundles = format!("Bundles save {}.", percent(plain - bundles, plain));
    match class.verdict {
        Verdict::Empty => "No packet would cross: there is nothing to advise on.".to_owned(),
        Verdict::NotSeen => {
            format!("Most of it was not captured: nothing can be said of compression. {by_bundles}")
        }
        Verdict::Nothing => {
            "Nothing to gain: it does not shrink, as if encrypted or compressed already, and at this rate \
            too little waits for bundles."
                .to_owned()
        }
        Verdict::Bundles => format!(
            "Compression gains nothing: this does not shrink, as if encrypted or compressed already. {by_bundles}"
        ),
        Verdict::Compression => gains(report),
    }
}

fn gains(report: &Report) -> String {
    let class = &report.whole;
    let (Some(plain), Some(both)) = (class.on(Way::Plain), class.on(Way::Both)) else { return String::new() };
    let less = plain.wire_bytes.saturating_sub(both.wire_bytes);
    let mut words = format!(
        "Bundles and compression save {} of what a plain tunnel takes: {} on the wire, {} of the link",
        percent(less as f64, plain.wire_bytes as f64),
        units::bytes(less),
        time(plain.seconds - both.seconds)
    );
    if let (Some(before), Some(after)) = (plain.cost, both.cost) {
        words += &format!(", {} of {}", money(before - after), money(before));
    }
    words
        + &match class.pays_up_to {
            UpTo::Rate(bits) => {
                format!(". With this machine, compression pays on links up to {}.", rate(bits))
            }
            UpTo::Always => ". With this machine, compression pays on any link.".to_owned(),
            UpTo::Never => ".".to_owned(),
        }
}

/// Whether there are figures: of what was not captured, compression would make what nobody knows.
pub(super) fn can_say(class: &Class, way: Way) -> bool {
    class.verdict != Verdict::NotSeen || !way.compresses()
}

/// Bytes on the wire on one way.
pub(super) fn wire(class: &Class, way: Way) -> u64 {
    class.on(way).map_or(0, |sent| sent.wire_bytes)
}

/// A way in words.
pub(super) const fn name(way: Way) -> &'static str {
    match way {
        Way::Plain => "tunnel, plain: each packet alone",
        Way::Bundles => "tunnel with bundles",
        Way::Compression => "tunnel with compression",
        Way::Both => "tunnel with both",
    }
}
