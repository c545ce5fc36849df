//! The results of the cases that were tried, as text: by kind, and each that failed with its reason.

use std::collections::BTreeMap;
use std::io::Write;

use crate::case::{Case, Mode};

/// Cases that were tried against one peer.
#[derive(Default)]
pub(crate) struct Tried {
    kinds: BTreeMap<String, (usize, usize)>,
    failed: Vec<String>,
}

impl Tried {
    /// Notes how a case ended.
    pub(crate) fn note(&mut self, case: Case, result: Result<(), String>) {
        let (good, all) = self.kinds.entry(kind(case)).or_default();
        *all += 1;
        match result {
            Ok(()) => *good += 1,
            Err(why) => self.failed.push(format!("{case}: {why}")),
        }
    }

    /// Says what passed, also where the output of tests that pass is not shown; fails if anything did not.
    pub(crate) fn conclude(self, peer: &str) {
        let mut text = String::new();
        for (kind, (good, all)) in &self.kinds {
            text.push_str(&format!("  {peer}: {good:3} of {all:3}   {kind}\n"));
        }
        // Past libtest, which keeps what a test prints to itself.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
        assert!(!self.kinds.is_empty(), "{peer}: nothing was tried");
        assert!(self.failed.is_empty(), "{peer}:\n{}", self.failed.join("\n"));
    }
}

/// A case without its addresses, algorithms and lengths.
pub(crate) fn kind(case: Case) -> String {
    let protocols = [
        case.ah.map(|_| "ah"),
        case.esp.map(|_| "esp"),
        case.ipcomp.then_some("ipcomp"),
        Some(match case.mode {
            Mode::Transport => "transport",
            Mode::Tunnel => "tunnel",
            Mode::Aggfrag(_) => "aggfrag",
        }),
        case.udp.then_some("udp"),
    ];
    protocols.into_iter().flatten().collect::<Vec<_>>().join(" ")
}
