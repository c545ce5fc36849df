//! Notes on what was measured, and on where the equation is off.

use super::MeasuredCell;
use super::grid::is_todays;
use super::slowness::{ProcessorGroups, Slowness};
use super::tables::{FORMS, LARGE};

/// Cells that are named one by one.
const NAMED: usize = 6;

pub(super) fn all(groups: &ProcessorGroups, slow: &[Slowness], cells: &[MeasuredCell]) -> Vec<String> {
    let mut notes = vec![run(), forms(), slowness(groups, slow)];
    let papers: Vec<&MeasuredCell> = cells.iter().filter(|it| !is_todays(it.place.protection)).collect();
    notes.extend((0..FORMS.len()).map(|form| errors(form, &papers)));
    notes
}

fn run() -> String {
    "measured with tunnels: two hosts in network namespaces with a `strait` each, IPComp, ESP and AH in transport mode directly behind \
     IPv6 with manual keys, an MTU of 1,280 bytes, outer fragments. Links have 80 % of each rate, of bytes of IP. A packet is a UDP \
     datagram that begins with the rest of a TCP header, so that packets are as long as the paper's; those of 63 KiB have 96 bytes less, \
     as the tunnel cuts packets of up to 64,488 bytes. ICVs have 96 bits, where the equation has the whole hash. \
     DEFLATE has a window of 2 KiB, in the equation too, so that `trans` and \
     `book1` shrink less than in Table 4"
        .to_owned()
}

fn forms() -> String {
    "a quota slows work that goes on, and no single packet: what one packet takes fits into what a period of the quota leaves. So 4 to \
     256 packets are in flight. `packets in flight` is the time between two that arrive, beside the equation in the form of section 2 in \
     which stages work at the same time and the slowest sets the pace. `one after another` adds up what the stages took in the same \
     runs, processor time of each daemon over its share and bytes of IP over the link's rate: the form of Figures 6 to 9, beside the \
     equation of section 6.1"
        .to_owned()
}

fn slowness(groups: &ProcessorGroups, slow: &[Slowness]) -> String {
    if let Err(why) = &groups.0 {
        return format!("at full speed only, and not as slow as the paper's processor: {why}");
    }
    let shares = slow.iter().filter(|it| !is_todays(it.protection)).map(|it| it.share * 100.0);
    let (least, most) = shares.fold((f64::INFINITY, 0.0), |(a, b), it| (f64::min(a, it), f64::max(b, it)));
    format!(
        "each end is limited by a control group to {least:.1} to {most:.1} % of a processor, the share at which all that a suite computes is \
         as fast as in Table 1, found by measuring; for compression only, at which both codecs compress as fast as in Tables 5 and 6. One \
         quota slows all alike, and this machine is not faster than the paper's by the same factor at everything: so the codecs beside a \
         suite are not as slow as the paper's. The equation has the rates that were measured, at that share"
    )
}

/// Cells in which the equation is off by more than [`LARGE`] in a form, and those of them that daemons explain.
fn errors(form: usize, cells: &[&MeasuredCell]) -> String {
    let (name, of) = FORMS[form];
    let off = |it: &&MeasuredCell, place: usize| of(it).errors()[place].abs() > LARGE;
    let large: Vec<&MeasuredCell> = cells.iter().copied().filter(|it| off(it, 0)).collect();
    let mut left: Vec<&MeasuredCell> = cells.iter().copied().filter(|it| off(it, 1)).collect();
    left.sort_by(|a, b| of(b).errors()[1].abs().total_cmp(&of(a).errors()[1].abs()));
    let explained = large.iter().filter(|it| !off(it, 1)).count();
    let named = left.iter().take(NAMED).map(|it| {
        let error = of(it).errors()[1];
        format!("{}, {}, {}, {} ({error:+.0} %)", it.protection, it.benchmark, it.payload, it.network)
    });
    let named = named.collect::<Vec<_>>().join("; ");
    let rest = if left.is_empty() { String::new() } else { format!(", the largest: {named}") };
    format!(
        "{name}: the equation is off by more than {LARGE} % in {} of {} cells. It leaves out what a daemon does for each packet, fragment and \
         compression besides suite and codec, which explains {explained} of them; with it, {} cells are off by more{rest}",
        large.len(),
        cells.len(),
        left.len(),
    )
}
