//! Draws a [`View`]: nothing here remembers anything.
//!
//! ```text
//! node and peer         1 line
//! link, queue, savings  5 lines
//! the page              flows, why, savings or help
//! what is selected      1 line, or why the daemon does not answer
//! keys                  1 line
//! ```
//!
//! ASCII alone: a serial line or another locale shows it as well. The terminal is sent what changed since the last time, and no more.

mod flows;
mod help;
mod link;
mod savings;
#[cfg(test)]
mod tests;
mod why;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use strait_transfer::path::Printable;

use super::view::{Page, View};
use crate::units;

/// The smallest terminal in which all has a place.
const SMALLEST: (u16, u16) = (60, 12);
/// Lines of the link to the peer.
const LINK: u16 = 5;
/// Most characters of a name: as many as any terminal has columns, within reason.
const NAME_MAX: usize = 256;

/// Draws all.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let area = frame.area();
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        return too_small(frame, area);
    }
    // Where there is room, an empty line on each side of the page.
    let gap = u16::from(area.height >= 16);
    let parts = [
        Constraint::Length(1),
        Constraint::Length(LINK),
        Constraint::Length(gap),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [head, link, _, page, selected, keys] = Layout::vertical(parts).areas(area);
    frame.render_widget(self::head(view), head);
    frame.render_widget(keys_line(view), keys);
    if let (Page::Why, Some(flow)) = (view.page, view.flow()) {
        // Its figures take the place of the link's.
        let whole = Rect { y: link.y, height: page.bottom() - link.y, ..page };
        why::draw(frame, whole, flow, theme(view));
    } else {
        link::draw(frame, link, view);
        match view.page {
            Page::Flows | Page::Why => flows::draw(frame, page, view),
            Page::Savings => savings::draw(frame, page, view),
            Page::Help => help::draw(frame, page, view),
        }
    }
    frame.render_widget(selected_line(view), selected);
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let (columns, lines) = SMALLEST;
    let said = format!("terminal too small: {} x {}", area.width, area.height);
    let needed = format!("top needs {columns} x {lines}; q quits");
    for (line, text) in (area.top()..area.bottom()).zip([said, needed]) {
        frame.render_widget(Line::from(text), Rect { y: line, height: 1, ..area });
    }
}

/// How things are told apart; without colours by attributes alone.
#[derive(Clone, Copy)]
struct Theme {
    colours: bool,
}

fn theme(view: &View) -> Theme {
    Theme { colours: view.colours }
}

impl Theme {
    fn bold() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn chosen() -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn good(self) -> Style {
        if self.colours { Style::new().fg(Color::Green) } else { Style::new() }
    }

    fn bad(self) -> Style {
        if self.colours { Style::new().fg(Color::Red) } else { Theme::bold() }
    }
}

/// Names from peers and from the network, as a terminal may show them.
fn plain(name: &str) -> String {
    let short: String = name.chars().take(NAME_MAX).collect();
    Printable(short.as_bytes()).to_string()
}

/// `text` in `width` columns: what is too long loses its middle, as both ends of a flow say more.
fn fitted(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let (front, back) = (kept / 2, kept - kept / 2);
    let ends = letters.iter().take(front).chain(std::iter::once(&'~'));
    ends.chain(letters.iter().skip(letters.len() - back)).take(width).collect()
}

fn head(view: &View) -> Line<'static> {
    let report = view.polls().report();
    let up = format!("{}  up {}", plain(&report.node.interface), units::seconds(report.node.uptime_seconds));
    let peer = match view.peer() {
        None => "no peers".to_owned(),
        Some((place, peer)) => {
            let several = match report.peers.len() {
                1 => String::new(),
                all => format!(" ({} of {all})", place + 1),
            };
            let endpoint = peer.endpoint.as_deref().unwrap_or("address unknown");
            format!("peer {}{several}: {}, {}", plain(&peer.name), plain(&peer.condition()), plain(endpoint))
        }
    };
    Line::styled(format!("{up}  {peer}"), Theme::bold())
}

/// The selected flow in words, or what is wrong.
fn selected_line(view: &View) -> Line<'static> {
    if let Some(trouble) = &view.trouble {
        let every = units::span(view.every);
        return Line::styled(format!("trying again every {every}: {}", plain(trouble)), theme(view).bad());
    }
    match (view.page, view.flow()) {
        (Page::Flows, Some(flow)) => {
            let decision = &flow.decision;
            Line::from(format!(
                "{}  {}: {}",
                plain(&decision.class),
                plain(&decision.choice),
                decision.reason_words()
            ))
        }
        _ => match view.polls().report().node.warnings.as_slice() {
            [] => Line::default(),
            [first, ..] => Line::styled(format!("WARNING {}", plain(first)), theme(view).bad()),
        },
    }
}

fn keys_line(view: &View) -> Line<'static> {
    let peer = if view.polls().report().peers.len() > 1 { "  p next peer" } else { "" };
    Line::styled(format!("q quit  w why  s savings  j/k select{peer}  ? help"), Theme::chosen())
}
