//! What two nodes say that have nothing to send.

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_testbed::interrupt;

use super::stage::{Keying, KeyingStage};
use crate::echo::Echoes;
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

const PACKETS: Target = Target::AtMost(0.0);
/// Until neighbours on the link have asked after each other for the last time (delay_first_probe_time and the probes, arp(7)), and
/// what belongs to the last packets was acknowledged.
const CALM: Duration = Duration::from_secs(10);

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    // Longer than a packet key lives.
    let seconds = setting.effort.pick(90, 10);
    let title =
        format!("packets on the link, both ways, in {seconds} s without traffic, after 50 round trips");
    let mut section = BenchSection::new("sessionless: idle", title, &Keying::ALL.map(Keying::name));
    let mut packets: [RunValues; 2] = Default::default();
    section.before.push(settle()?);
    for (keying, packets) in Keying::ALL.into_iter().zip(&mut packets) {
        let stage = KeyingStage::set(&setting.program, keying)?;
        Echoes::idle(&stage.hosts, stage.inside(), 50).run()?;
        interrupt::pause(CALM)?;
        let before = stage.hosts.link.traffic()?;
        interrupt::pause(Duration::from_secs(seconds))?;
        let since = stage.hosts.link.traffic()?.since(before);
        let count = (since.there.packets + since.back.packets) as f64;
        progress(section.name, 1, keying.name(), count, "packets");
        packets.push(count);
    }
    section.judge("packets without a session while idle", packets[1].clone(), PACKETS);
    section.row("packets", packets);
    Ok(section)
}
