//! A report as a page of Markdown: machine, commit, date, a table a section, and what limits the figures.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{BenchReport, BenchSection};

/// What figures between two namespaces cannot say.
const LIMITS: &str = "Both ends of everything run on this one machine, as network namespaces, and share its processors with the links. \
                      Links with a delay are emulated. Figures compare what ran here in one run; they are not those of other machines.";

/// When and of what the figures are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportOrigin {
    /// Of the source, with a mark where it was changed; what is not known is said so.
    pub(crate) commit: String,
    /// Year, month and day, UTC.
    pub(crate) date: String,
    /// How the program was called.
    pub(crate) command: String,
}

impl ReportOrigin {
    /// Of this call, now.
    pub(crate) fn here() -> ReportOrigin {
        let source = env!("CARGO_MANIFEST_DIR");
        let git = |words: &[&str]| said(Command::new("git").args(["-C", source]).args(words));
        let changed = git(&["status", "--porcelain", "--untracked-files=no"]).filter(|it| !it.is_empty());
        let mark = if changed.is_some() { ", changed" } else { "" };
        let commit = git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "not known".to_owned());
        let mut words = std::env::args();
        let program = words.next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        ReportOrigin {
            commit: commit + mark,
            date: said(Command::new("date").args(["-u", "+%Y-%m-%d"]))
                .unwrap_or_else(|| "not known".to_owned()),
            command: std::iter::once(program).chain(words).collect::<Vec<_>>().join(" "),
        }
    }
}

impl BenchReport {
    /// Everything, as a page.
    pub(crate) fn markdown(&self, origin: &ReportOrigin) -> String {
        let ReportOrigin { commit, date, command } = origin;
        let mut out = format!(
            "# Figures of {date}\n\nMachine: {}. Commit: {commit}. Command: `{command}`.\n\n{LIMITS}\n",
            self.machine
        );
        for section in &self.sections {
            out.push_str(&table(section));
        }
        for failed in &self.failed {
            let _ = writeln!(out, "\n{} could not run: {}", failed.name, on_one_line(&failed.cause));
        }
        out
    }
}

fn table(section: &BenchSection) -> String {
    let mut out = format!("\n## {}\n\n{}\n\n", section.name, section.title);
    let row = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    out.push_str(&row(&mut std::iter::once(String::new()).chain(section.columns.iter().cloned())));
    out.push_str(&format!("|---{}|\n", "|---".repeat(section.columns.len())));
    for it in &section.rows {
        let cells = it.cells.iter().map(ToString::to_string);
        out.push_str(&row(&mut std::iter::once(it.quantity.clone()).chain(cells)));
    }
    if !section.judgements.is_empty() {
        out.push('\n');
    }
    for it in &section.judgements {
        let _ = writeln!(out, "- {}: {}, target {}: {}", it.figure, it.sample, it.target, it.verdict());
    }
    if !section.notes.is_empty() {
        out.push('\n');
    }
    for note in &section.notes {
        let _ = writeln!(out, "- {}", on_one_line(note));
    }
    out
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a command says, if it ends well.
fn said(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use strait_lab::measure::MachineInfo;

    use super::*;
    use crate::report::Failed;
    use crate::target::Target;

    #[test]
    fn a_page_has_machine_commit_date_tables_and_notes() {
        let mut section =
            BenchSection::new("peers: base", "10 Mbit/s, 60 ms", &["text, Mbit/s", "Strait / it"]);
        section.row("a|b", [[8.0, 30.0, 9.0].into_iter().collect(), [].into_iter().collect()]);
        section.judge("ratio", [2.0].into_iter().collect(), Target::AtLeast(1.0));
        section.notes.push("one\n  two".to_owned());
        let machine = MachineInfo { processor: "p".into(), cores: 2, kernel: "6".into(), governor: None };
        let failed = vec![Failed { name: "text", cause: "no\nlink".to_owned() }];
        let report = BenchReport { machine, sections: vec![section], failed };
        let origin =
            ReportOrigin { commit: "abc".into(), date: "2026-01-02".into(), command: "bench".into() };
        let page = report.markdown(&origin);
        assert!(
            page.starts_with("# Figures of 2026-01-02\n\nMachine: p, 2 cores, Linux 6. Commit: abc."),
            "{page}"
        );
        let expected = "\n## peers: base\n\n10 Mbit/s, 60 ms\n\n|  | text, Mbit/s | Strait / it |\n|---|---|---|\n\
                        | a\\|b | 9.00 (8.00-30.0) | - |\n\n- ratio: 2.00 (2.00-2.00), target >= 1: meets\n\n- one two\n";
        assert!(page.contains(expected), "{page}");
        assert!(page.ends_with("\ntext could not run: no link\n"), "{page}");
    }
}
