//! A report on a terminal.

use strait_advise::AdviseReport;
use strait_advise::report::AdviseVerdict;

use super::classes::{self, SAMPLING};
use super::content;

/// The whole report.
pub(super) fn render(report: &AdviseReport, colours: bool) -> String {
    let mut out = content::inputs(report).render(0);
    for note in content::notes(report) {
        out.push_str(&format!("  {note}\n"));
    }
    if report.total.verdict == AdviseVerdict::Empty {
        return format!("{out}\n{}\n", content::verdict(report));
    }
    out.push_str(&format!("\n{}\n\n{}", content::extent(report), content::whole(report).render(2)));
    out.push_str(&format!("  {}\n", content::returned(report)));
    let (bold, plain) = if colours { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    out.push_str(&format!("\n{bold}{}{plain}\n", content::verdict(report)));
    let policies = content::policies(report);
    if !policies.is_empty() {
        out.push_str(&format!("\n{}\n{}", content::POLICIES, policies.render(2)));
    }
    for (head, group) in classes::kinds(report) {
        out.push_str(&format!("\n{}", classes::classes(head, group, report).render(2)));
        if let Some(rest) = classes::rest(group) {
            out.push_str(&format!("  {rest}\n"));
        }
    }
    if let Some(codecs) = classes::codecs(&classes::compared(report)) {
        out.push_str(&format!("\n{}", codecs.render(2)));
        out.extend(SAMPLING.map(|line| format!("  {line}\n")));
    }
    out
}
