//! Strait beside other tunnels over the same links in one run: WireGuard in user space, OpenVPN, tinc, the kernel's IPsec and ssh,
//! each in its best setting, with compression where it has one.
//!
//! A run of a link measures one tunnel after the other, or a few at a time where no link of theirs keeps the machine busy; each has two
//! hosts and a link of its own, which nothing else crosses. What the system lacks is installed beside it; what cannot be had is named.

mod datagrams;
mod figure;
mod kernel;
mod links;
mod measure;
mod openvpn;
mod polls;
mod process;
mod programs;
mod ssh;
mod stage;
mod table;
mod tinc;
mod way;

pub(crate) use figure::drawing;
pub(crate) use way::PeerWay;

use strait_testbed::interrupt;

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::BenchSetup;
use links::LINKS;
use programs::PeerPrograms;

/// The part that measures sparse packets.
const SPARSE: &str = "sparse";

/// A section a link, and one for sparse packets, each given to `done` when it is measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let programs = PeerPrograms::find(setting)?;
    // Once, in the section that comes first.
    let mut notes = programs.notes(&setting.tunnels);
    let is_wanted = |name: &str| setting.part.as_ref().is_none_or(|part| part == name);
    for link in LINKS.iter().filter(|link| is_wanted(link.part)) {
        let mut section = table::run(setting, &programs, link)?;
        section.notes.splice(0..0, std::mem::take(&mut notes));
        done(section);
        interrupt::check()?;
    }
    if is_wanted(SPARSE) {
        let mut section = polls::run(setting, &programs)?;
        section.notes.splice(0..0, std::mem::take(&mut notes));
        done(section);
    }
    Ok(())
}
