//! What did not cross the link since the daemon started: by peer, by what saved it, by service, by codec.

use std::cmp::Reverse;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use strait_node::report::{CodecReport, PeerReport, ServiceReport};

use super::super::figures::Savings;
use super::super::view::View;
use super::{Theme, fitted, plain};
use crate::units;

/// Columns of a name, and of a number.
const NAME: usize = 16;
const NUMBER: usize = 10;
/// Services that are shown at most.
const SERVICES: usize = 5;

/// Both directions in a line.
pub(super) fn sentence(sent: Savings, received: Savings) -> String {
    let percent = |it: Savings| it.percent().map_or("-".to_owned(), |percent| format!("{percent:.0} %"));
    format!(
        "{} of {} sent ({}), {} of {} received ({})",
        signed(sent.saved()),
        units::bytes(sent.bytes),
        percent(sent),
        signed(received.saved()),
        units::bytes(received.bytes),
        percent(received)
    )
}

/// Bytes with a sign where encapsulation took more than was saved.
fn signed(bytes: i128) -> String {
    let size = units::bytes(u64::try_from(bytes.unsigned_abs()).unwrap_or(u64::MAX));
    if bytes < 0 { format!("-{size}") } else { size }
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let report = view.polls().report();
    let mut codecs: Vec<&CodecReport> = report.codecs.iter().filter(|it| it.sent_blocks > 0).collect();
    codecs.sort_by_key(|it| Reverse(it.input_bytes));
    let lines = usize::from(area.height);
    // Codecs and what the shown peer saved have the lower lines; at least one peer is shown.
    let sources = view.peer().map(|(_, peer)| sources(peer)).into_iter().flatten();
    let below: Vec<Line<'_>> = sources.chain(by_service(&report.services)).chain(by_codec(&codecs)).collect();
    let peers = by_peer(&report.peers, lines.saturating_sub(below.len()).max(3));
    for (y, line) in (area.top()..area.bottom()).zip(peers.into_iter().chain(below)) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// The peers that saved most, in at most `lines` lines with the heading.
fn by_peer(peers: &[PeerReport], lines: usize) -> Vec<Line<'static>> {
    let mut all: Vec<&PeerReport> = peers.iter().collect();
    all.sort_by_key(|peer| {
        (Reverse(Savings::from(peer.sent).saved() + Savings::from(peer.received).saved()), peer.name.as_str())
    });
    let room = lines.saturating_sub(1);
    let shown = if all.len() > room { room.saturating_sub(1) } else { all.len() };
    let head = row("since the start", ["sent", "on wire", "saved", "received", "on wire", "saved"]);
    let mut out = vec![Line::styled(head, Theme::bold())];
    out.extend(all.iter().take(shown).map(|peer| {
        let (sent, received) = (Savings::from(peer.sent), Savings::from(peer.received));
        let percent = |it: Savings| it.percent().map_or("-".to_owned(), |percent| format!("{percent:.1} %"));
        let cells = [
            units::bytes(sent.bytes),
            units::bytes(sent.wire_bytes),
            percent(sent),
            units::bytes(received.bytes),
            units::bytes(received.wire_bytes),
            percent(received),
        ];
        Line::from(row(&plain(&peer.name), cells.each_ref().map(String::as_str)))
    }));
    if all.len() > shown {
        out.push(Line::from(format!("{} more peers", all.len() - shown)));
    }
    out
}

/// What saved bytes on the way to one peer; nothing where nothing did.
fn sources(peer: &PeerReport) -> Vec<Line<'static>> {
    let mut found = Vec::new();
    let headers = peer.header_compression_saved_bytes;
    if headers > 0 {
        found.push(("header compression", headers));
    }
    if let Some(history) = &peer.history {
        let alone = history.bytes_before.saturating_sub(history.bytes_after);
        found.extend([("history of packets", alone), ("byte cache", history.copied_bytes)]);
    }
    found.retain(|(_, bytes)| *bytes > 0);
    let lines = found.iter().map(|(what, bytes)| format!("  {what:<20}{:>NUMBER$}", units::bytes(*bytes)));
    under(format!("saved to {} by", plain(&peer.name)), lines.map(Line::from))
}

/// Lines below a heading; nothing where there are none.
fn under(head: String, lines: impl Iterator<Item = Line<'static>>) -> Vec<Line<'static>> {
    let mut lines = lines.peekable();
    let head = lines.peek().is_some().then(|| Line::styled(head, Theme::bold()));
    head.into_iter().chain(lines).collect()
}

/// The services of which most was sent on the wire; nothing where nothing was.
fn by_service(services: &[ServiceReport]) -> Vec<Line<'static>> {
    let lines = services.iter().take(SERVICES).map(|service| {
        let sent = Savings { bytes: service.bytes, wire_bytes: service.wire_bytes };
        let saved = sent.percent().map_or("-".to_owned(), |percent| format!("{percent:.1} %"));
        let ratio = service.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let [bytes, wire] = [service.bytes, service.wire_bytes].map(units::bytes);
        Line::from(row(&plain(&service.service), [&bytes, &wire, &saved, &ratio, "", ""]))
    });
    under(row("service", ["sent", "on wire", "saved", "ratio", "", ""]), lines)
}

/// Blocks that were sent compressed, the most input first.
fn by_codec(codecs: &[&CodecReport]) -> Vec<Line<'static>> {
    let lines = codecs.iter().map(|codec| {
        let ratio = codec.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let (blocks, input) = (codec.sent_blocks.to_string(), units::bytes(codec.input_bytes));
        let output = units::bytes(codec.output_bytes);
        Line::from(row(&plain(&codec.codec), [&blocks, &input, &output, &ratio, "", ""]))
    });
    under(row("codec", ["blocks", "input", "output", "ratio", "", ""]), lines)
}

fn row(name: &str, cells: [&str; 6]) -> String {
    let cells: String = cells.iter().map(|cell| format!("{cell:>NUMBER$}")).collect();
    format!("{:<NAME$}{cells}", fitted(name, NAME)).trim_end().to_owned()
}
