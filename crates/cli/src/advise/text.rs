//! A report on a terminal.

use strait_advise::AdviseReport;
use strait_advise::report::AdviseVerdict;

use super::classes::{self, SAMPLING};
use super::content;
use crate::output::wrapped;

/// Columns of a terminal that every one has.
const COLUMNS: usize = 80;

fn paragraph(words: &str) -> String {
    wrapped(words, COLUMNS).join("\n")
}

/// The report; its details as well, if they are wanted.
pub(super) fn render(report: &AdviseReport, colours: bool, details: bool) -> String {
    let mut out = content::inputs(report).render(0);
    for note in content::notes(report) {
        out.push_str(&format!("  {note}\n"));
    }
    if report.total.verdict == AdviseVerdict::Empty {
        return format!("{out}\n{}\n", content::verdict(report));
    }
    let (bold, plain) = if colours { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
    if let Some(today) = content::today(report) {
        out.push_str(&format!("\n{bold}{}{plain}\n", paragraph(&today)));
    }
    out.push_str(&format!("{}\n", paragraph(&content::verdict(report))));
    out.push_str(&format!("\n{}\n\n{}", content::extent(report), content::whole(report, details).render(2)));
    out.push_str(&format!("\n{}\n", paragraph(&content::returned(report))));
    let policies = content::policies(report);
    if !policies.is_empty() {
        out.push_str(&format!("\n{}\n{}", content::POLICIES, policies.render(2)));
    }
    if !details {
        out.push_str(&format!("\n{}", classes::services(report).render(2)));
        let rules = content::rules(report);
        if !rules.is_empty() {
            out.push_str(&format!("\n{}\n\n{rules}", paragraph(content::RULES)));
        }
        out.push_str("\n--detail has every mode, protocols, pairs of hosts and codecs.\n");
        return out;
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
