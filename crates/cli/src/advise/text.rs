//! A report on a terminal.

use strait_advise::AdviseReport;
use strait_advise::report::{AdviseVerdict, KeyCacheAdvice};

use super::classes::{self, SAMPLING};
use super::{content, keys};
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
    if let Some(advice) = &report.key_caches {
        out.push_str(&format!("{}\n", paragraph(&keys::verdict(advice))));
    }
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
        if let Some(advice) = report.key_caches.as_ref().filter(|advice| !advice.holds_today()) {
            out.push_str(&paste(advice));
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
    if let Some(advice) = &report.key_caches {
        out.push_str(&format!("\n{}", keys::tiers(advice).render(2)));
        out.extend(keys::notes(advice).iter().map(|note| format!("{}\n", paragraph(note))));
        out.push_str(&paste(advice));
    }
    out
}

/// The keys of the configuration for caches.
fn paste(advice: &KeyCacheAdvice) -> String {
    format!("\n{}\n\n{}", paragraph(keys::PASTE), advice.toml)
}
