//! The link to the peer: what it carries of its rate, queue and path, savings, drops.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use strait_node::report::PeerReport;

use super::super::figures::{LinkRate, Savings};
use super::super::view::View;
use super::{Theme, plain, savings, theme};
use crate::show::text::queue;
use crate::units;

/// Columns of a bar: what 80 columns leave beside the longest words, and what 60 do.
const BAR: std::ops::RangeInclusive<u16> = 5..=22;
/// Columns beside it.
const BESIDE_BAR: u16 = 58;

/// Columns from which there is room for the largest delay of the queue, and for the minimum RTT.
const MAX_FROM: u16 = 72;
const MIN_FROM: u16 = 100;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let Some((_, peer)) = view.peer() else { return };
    let node = &view.polls().report().node;
    let link = view.polls().link(peer);
    let incoming = node.down_bits_per_second.map_or(LinkRate::Unknown, LinkRate::Configured);
    let bar = usize::from(area.width.saturating_sub(BESIDE_BAR).clamp(*BAR.start(), *BAR.end()));
    let lines = [
        direction("sent", link.sent, link.rate, bar, theme(view)),
        direction("received", link.received, incoming, bar, theme(view)),
        named("queue", queue::occupancy(&peer.queue, area.width >= MAX_FROM) + &path(peer, area.width)),
        named("saved", savings::sentence(Savings::from(peer.sent), Savings::from(peer.received))),
        drops(view),
    ];
    for (y, line) in (area.top()..area.bottom()).zip(lines) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

fn named(name: &str, value: String) -> Line<'static> {
    Line::from(format!("{name:<9} {value}"))
}

/// The bar of one direction; where no rate is known, there is nothing to compare with.
fn direction(name: &str, now: Option<f64>, rate: LinkRate, bar: usize, theme: Theme) -> Line<'static> {
    let used = now.map_or("-".to_owned(), units::bits_per_second);
    let (bits, how) = match rate {
        LinkRate::Unknown => return named(name, format!("{used}, link rate unknown")),
        LinkRate::Configured(bits) => (bits as f64, "configured"),
        LinkRate::Estimated(bits) => (bits as f64, "estimated"),
    };
    let share = (now.unwrap_or(0.0) / bits.max(1.0)).clamp(0.0, 1.0);
    // A link that carries anything shows it.
    let filled = if share > 0.0 { ((share * bar as f64).round() as usize).max(1) } else { 0 };
    let style = if share > 0.98 { theme.bad() } else { theme.good() };
    let rest = format!(
        "{}] {:3.0} %  {used} of {}, {how}",
        ".".repeat(bar - filled),
        share * 100.0,
        units::bits_per_second(bits)
    );
    Line::from(vec![
        Span::styled(format!("{name:<9} ["), Style::new()),
        Span::styled("#".repeat(filled), style),
        Span::styled(rest, Style::new()),
    ])
}

fn path(peer: &PeerReport, width: u16) -> String {
    let Some(path) = &peer.path else { return String::new() };
    let millis = |seconds: f64| format!("{:.1} ms", seconds * 1e3);
    let rtt = path.rtt_seconds.map_or(String::new(), |rtt| {
        let min = path.min_rtt_seconds.filter(|_| width >= MIN_FROM);
        let min = min.map_or(String::new(), |min| format!(" (min {})", millis(min)));
        format!("  RTT {}{min}", millis(rtt))
    });
    let loss = match path.delivery_reports_received {
        0 => String::new(),
        _ => format!("  loss {:.1} %", path.loss_ratio * 100.0),
    };
    rtt + &loss
}

fn drops(view: &View) -> Line<'static> {
    let all = view.polls().drops();
    let one = |it: &super::super::figures::Drops| {
        let now = if it.last > 0 { format!(" (+{})", it.last) } else { String::new() };
        format!("{} {}{now}", plain(&it.reason), it.since)
    };
    if all.is_empty() {
        return named("dropped", "nothing since top began".to_owned());
    }
    let grows = all.iter().any(|it| it.last > 0);
    let said = all.iter().map(one).collect::<Vec<_>>().join(", ");
    let line = named("dropped", said);
    if grows { line.style(theme(view).bad()) } else { line }
}
