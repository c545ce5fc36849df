//! Tests of all reports together.

use std::collections::BTreeSet;

use crate::broker::broker;
use crate::enskip::EnskipLab;
use crate::history::history;
use crate::klogin::{KloginLab, OwnLine};
use crate::sched::{PacketTrace, scheduling};
use crate::vpn::{self, PipelineSize};
use crate::{Corpus, Effort, LabReport, StepNote};

/// Names that several tables have.
fn twice(reports: &[LabReport]) -> Vec<String> {
    let tables = reports.iter().flat_map(|report| &report.tables);
    let mut seen = BTreeSet::new();
    tables
        .map(|table| format!("{}, {}", table.exhibit, table.subject))
        .filter(|name| !seen.insert(name.clone()))
        .collect()
}

#[test]
fn no_two_tables_have_one_name() {
    let (quick, corpus, tell) = (Effort::Quick, Corpus::generated(), &mut |_: StepNote<'_>| {});
    let hosts = || Err("none".to_owned());
    let klogin =
        KloginLab { effort: quick, hosts: hosts(), strait: None, sshd: None, own: OwnLine::default() };
    let enskip = EnskipLab { effort: quick, hosts: hosts(), strait: None, file: None };
    let [clients, processors] = [3, 2].map(|number| number.try_into().unwrap());
    let reports = [
        vpn::crypto(quick, tell).unwrap(),
        vpn::slowdown(quick, tell).unwrap(),
        vpn::codecs(quick, &corpus, &vpn::methods(), tell).unwrap(),
        vpn::combinations(None).report,
        vpn::combinations(Some(PipelineSize { clients, processors })).report,
        scheduling(quick, &PacketTrace::generated(), tell).unwrap().report,
        klogin.run(tell).unwrap().report,
        broker(quick, None, None, tell).unwrap().report,
        enskip.run(tell).unwrap().report,
        history(quick, tell).unwrap(),
    ];
    assert_eq!(twice(&reports), Vec::<String>::new());
    // The same tables as those of the paper's figures, from this machine's.
    let here = vpn::combinations_here(quick, &corpus, None, tell).unwrap().report;
    assert_eq!(twice(&[here]), Vec::<String>::new());
    assert!(reports[9].tables.iter().all(|table| table.exhibit == crate::Exhibit::Beyond));
}
