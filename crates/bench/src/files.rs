//! Files between two daemons, beside the programs that people use for that: rsync, scp, zstd through ssh, and
//! NNCP.
//!
//! All of them move the same files over the same link in turn: Strait through its daemons, which are told the link's rate, the
//! others to an sshd, or a node of NNCP, of their own beside the tunnel. What arrived is compared with what was sent.

mod bare_quic;
mod beside;
mod content;
mod delta;
mod lossy;
mod nncp;
mod processes;
mod releases;
mod resume;
mod small;
mod stage;
mod table;
mod thin;
mod unshaped;
mod way;

pub(crate) use bare_quic::BareStream;
pub(crate) use content::{FileContent, same};
pub(crate) use processes::{
    EndPeaks, all, ended_children, forget_peaks, own_memory, processor, tree, watched,
};
pub(crate) use table::size_name;
pub(crate) use way::{make_durable, rsync_options, wait};

use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchPart, BenchSetup, each_part};

/// A section for each part, given to `done` when it is measured.
pub(crate) fn run(setting: &BenchSetup, done: &mut dyn FnMut(BenchSection)) -> Result<(), Error> {
    let parts: [(&str, BenchPart); 7] = [
        ("unshaped", unshaped::run),
        ("thin", thin::run),
        ("lossy", lossy::run),
        ("delta", delta::run),
        ("small", small::run),
        ("resume", resume::run),
        ("beside", beside::run),
    ];
    each_part(&parts, setting, done)
}
