//! The decision on one flow with its figures: what `strait why` prints, one stage a line.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use strait_node::report::{EstimateReport, StagesReport};

use super::super::figures::Flow;
use super::{Theme, plain};
use crate::output::wrapped;
use crate::why::text::lines;

/// Columns of a name, and of a time.
const NAME: usize = 13;
const TIME: usize = 12;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, flow: &Flow, theme: Theme) {
    let decision = &flow.decision;
    let chosen = if decision.choice == "none" { Theme::bold() } else { theme.good() };
    let mut all = vec![Line::styled(plain(&decision.class), Theme::bold())];
    let width = usize::from(area.width).saturating_sub(NAME);
    for (name, value) in lines(decision) {
        let values = wrapped(&plain(&value), width);
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        let style = if name == "choice" { chosen } else { ratatui::style::Style::new() };
        all.extend(
            names.zip(values).map(|(name, value)| Line::styled(format!("{name:<NAME$}{value}"), style)),
        );
    }
    match &decision.estimate {
        Some(estimate) => all.extend(stages(estimate)),
        None => all.push(Line::from("no estimate: the entropy probe skipped all of it, unread by any codec")),
    }
    for (y, line) in (area.top()..area.bottom()).zip(all) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// The time of every stage of a block, without and with compression, and their sum.
fn stages(estimate: &EstimateReport) -> Vec<Line<'static>> {
    let (without, with) = (times(&estimate.uncompressed), times(&estimate.compressed));
    let head = format!("{:<NAME$}{:>TIME$}{:>TIME$}", "ms per block", "none", plain(&estimate.method));
    let one = |(name, without, with): (&str, f64, f64)| {
        Line::from(format!("{name:<NAME$}{:>TIME$.3}{:>TIME$.3}", without / 1e3, with / 1e3))
    };
    let stages = without.into_iter().zip(with).map(|((name, without), (_, with))| (name, without, with));
    let sum = |stages: [(&str, f64); 7]| stages.into_iter().map(|(_, micros)| micros).sum::<f64>();
    std::iter::once(Line::styled(head, Theme::bold()))
        .chain(stages.map(one))
        .chain(std::iter::once(one(("total", sum(without), sum(with)))))
        .collect()
}

fn times(stages: &StagesReport) -> [(&'static str, f64); 7] {
    [
        ("compress", stages.compress_us),
        ("encrypt", stages.encrypt_us),
        ("sender", stages.sender_us),
        ("link", stages.link_us),
        ("receiver", stages.receiver_us),
        ("decrypt", stages.decrypt_us),
        ("decompress", stages.decompress_us),
    ]
}
