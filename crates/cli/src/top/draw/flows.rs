//! The flows to the peer, those with more traffic first.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Row, Table, TableState};

use super::super::figures::Flow;
use super::super::view::View;
use super::{Theme, fitted, plain};
use crate::units;

/// Columns of numbers and words beside the flow itself, each behind a space; from this width on there are all.
const BYTES: u16 = 8;
const RATIO: u16 = 6;
const METHOD: u16 = 10;
const REASON: u16 = 15;
const ALL_FROM: u16 = 72;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let flows = view.flows();
    if flows.rows.is_empty() {
        let why = if flows.untold {
            "the sender did not tell its flows in time: it is busy"
        } else {
            "no flow matched a [[compress]] rule in the last seconds"
        };
        frame.render_widget(Line::from(why), Rect { height: 1, ..area });
        return;
    }
    let all = area.width >= ALL_FROM;
    let (after, reason) = if all { (BYTES, REASON) } else { (0, 0) };
    let class = area.width - BYTES - after - RATIO - METHOD - reason;
    // One line says how many there are below.
    let total = flows.rows.len() + flows.more;
    let lines = usize::from(area.height.saturating_sub(1));
    let shown = if total > lines { lines.saturating_sub(1).max(1) } else { lines };
    // The selected one is on the screen, if need be in the last row.
    let first = view.selected().saturating_sub(shown.saturating_sub(1));
    let below = total.saturating_sub(first + shown);
    let rows = flows.rows.iter().skip(first).take(shown).map(|flow| row(flow, class, all));
    let widths: Vec<Constraint> = [class, BYTES, after, RATIO, METHOD, reason]
        .into_iter()
        .filter(|width| *width > 0)
        .map(Constraint::Length)
        .collect();
    let table =
        Table::new(rows, widths).column_spacing(0).header(heading(all)).row_highlight_style(Theme::chosen());
    let height = u16::try_from(shown + 1).unwrap_or(u16::MAX).min(area.height);
    let mut state = TableState::new().with_selected(view.selected() - first);
    frame.render_stateful_widget(table, Rect { height, ..area }, &mut state);
    let more = match (first, below) {
        (0, 0) => return,
        (0, below) => format!("{below} more"),
        (above, below) => format!("{above} above, {below} more"),
    };
    if area.height > height {
        frame.render_widget(Line::from(more), Rect { y: area.y + height, height: 1, ..area });
    }
}

fn heading(all: bool) -> Row<'static> {
    let right = |text: &'static str| Text::from(text).right_aligned();
    let mut cells = vec![Text::from("flow"), right("bytes/s")];
    if all {
        cells.push(right("after"));
    }
    cells.extend([right("ratio"), Text::from(" method")]);
    if all {
        cells.push(Text::from(" reason"));
    }
    Row::new(cells).style(Theme::bold())
}

fn row(flow: &Flow, class: u16, all: bool) -> Row<'static> {
    let right = |text: String| Text::from(text).right_aligned();
    let decision = &flow.decision;
    let mut cells = vec![
        Text::from(fitted(&plain(&decision.class), usize::from(class))),
        right(units::bytes(decision.bytes_per_second)),
    ];
    if all {
        cells.push(right(flow.after.map_or("-".to_owned(), units::bytes)));
    }
    let ratio = flow.ratio.map_or("-".to_owned(), |ratio| match ratio {
        ..99.95 => format!("{ratio:.1}"),
        _ => format!("{ratio:.0}"),
    });
    cells.extend([right(ratio), Text::from(format!(" {}", fitted(&plain(&decision.choice), 9)))]);
    if all {
        cells.push(Text::from(format!(" {}", fitted(&plain(&decision.reason), usize::from(REASON) - 1))));
    }
    Row::new(cells)
}
