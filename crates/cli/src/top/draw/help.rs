//! Keys and columns.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::super::view::View;
use super::Theme;
use crate::output::wrapped;
use crate::units;

const KEYS: [(&str, &str); 6] = [
    ("q, Ctrl-C", "quit"),
    ("w", "why: the decision on the selected flow, with its figures; again: back"),
    ("s", "bytes saved since the daemon started; again: back"),
    ("up, down", "select a flow; also k and j"),
    ("p", "the next peer"),
    ("Ctrl-L", "draw the screen anew"),
];
const COLUMNS: [(&str, &str); 4] = [
    ("saved", "inner bytes less wire bytes: negative where headers and ESP took more than was saved"),
    ("bytes/s", "inner bytes in the last second with traffic; rows are in steps of a factor of 2"),
    ("after", "what compression is expected to leave of them; headers and ESP come on top"),
    ("reason", "as in `strait why --json`; the line below the list says it in words"),
];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let every = format!("This refreshes every {}.", units::span(view.every));
    let mut all = Vec::new();
    for (name, value) in KEYS.into_iter().chain(COLUMNS).chain([("", every.as_str())]) {
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        let values = wrapped(value, usize::from(area.width).saturating_sub(11));
        all.extend(names.zip(values).map(|(name, value)| Line::from(format!("{name:<11}{value}"))));
    }
    let head = Line::styled("keys and columns", Theme::bold());
    for (y, line) in (area.top()..area.bottom()).zip(std::iter::once(head).chain(all)) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}
