//! What a host with a full tunnel sends in the clear when something goes wrong: nothing, if it is closed.

mod stage;

use std::time::Duration;

use strait_lab::measure::{RunValues, settle};

use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;
use stage::ClosedStage;

/// Packets in the clear.
const NONE: Target = Target::AtMost(0.0);
const COLUMNS: [&str; 3] = ["sent", "in the clear", "without the defence"];
const LOCKDOWN: &str = "lockdown = true";

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClosedMishap {
    /// SIGKILL for the process that carries packets, and SIGABRT, by which a panic ends it.
    Kill,
    Panic,
    /// SIGKILL for the process that looks after the host's network.
    KillStarter,
    /// The interface is set down and up.
    DeviceDown,
    /// Another program flushes the rules. Without lockdown there is a moment until they are put back.
    Rules,
    /// A DHCP server hands out two halves of everything, or a route to the host that is meant.
    HalfRoutes,
    HostRoute,
    /// Only 0.0.0.0/0 is listed.
    OnlyIpv4,
    /// The file has another mark.
    Reload,
    /// From the moment that a tunnel is up again after `strait down`.
    Up,
}

impl ClosedMishap {
    const ALL: [ClosedMishap; 10] = [
        ClosedMishap::Kill,
        ClosedMishap::Panic,
        ClosedMishap::KillStarter,
        ClosedMishap::DeviceDown,
        ClosedMishap::Rules,
        ClosedMishap::HalfRoutes,
        ClosedMishap::HostRoute,
        ClosedMishap::OnlyIpv4,
        ClosedMishap::Reload,
        ClosedMishap::Up,
    ];

    const fn name(self) -> &'static str {
        match self {
            ClosedMishap::Kill => "kill -9, then the next start",
            ClosedMishap::Panic => "panic (SIGABRT), then the next start",
            ClosedMishap::KillStarter => "kill -9 of the starter, then the next start",
            ClosedMishap::DeviceDown => "the interface is set down and up",
            ClosedMishap::Rules => "rules flushed, lockdown",
            ClosedMishap::HalfRoutes => "rogue routes to 0.0.0.0/1 and 128.0.0.0/1, lockdown",
            ClosedMishap::HostRoute => "rogue routes to /32 and /128, lockdown",
            ClosedMishap::OnlyIpv4 => "only 0.0.0.0/0 is listed",
            ClosedMishap::Reload => "strait reload with another mark",
            ClosedMishap::Up => "down, then up: from the start on",
        }
    }

    /// The lines of `[node]`, with the defence or without it.
    const fn node(self, defended: bool) -> &'static str {
        match self {
            ClosedMishap::Rules | ClosedMishap::HalfRoutes | ClosedMishap::HostRoute if defended => LOCKDOWN,
            ClosedMishap::OnlyIpv4 if !defended => "allow_outside = [\"::/0\"]",
            _ => "",
        }
    }

    /// Whether it can be had without its defence.
    const fn has_other(self) -> bool {
        !matches!(self, ClosedMishap::Reload | ClosedMishap::Up)
    }

    const fn listed(self) -> &'static str {
        match self {
            ClosedMishap::OnlyIpv4 => "\"0.0.0.0/0\"",
            _ => "\"0.0.0.0/0\", \"::/0\"",
        }
    }

    /// Has it happen while packets are sent; says how many were sent.
    fn happens(self, stage: &mut ClosedStage, defended: bool, window: Duration) -> Result<u64, Error> {
        if !defended {
            stage.stop_repairs(self == ClosedMishap::DeviceDown)?;
        }
        stage.while_sending(window, |stage, pause| match self {
            ClosedMishap::Kill | ClosedMishap::Panic | ClosedMishap::KillStarter => {
                match self {
                    ClosedMishap::KillStarter => stage.kill_starter()?,
                    ClosedMishap::Panic => stage.kill(stage::ABORT)?,
                    _ => stage.kill(stage::KILL)?,
                }
                if !defended {
                    return stage.remove_unreachable();
                }
                pause();
                stage.start()
            }
            ClosedMishap::DeviceDown => {
                if !defended {
                    stage.remove_unreachable()?;
                }
                stage.ip(&["link", "set", "strait0", "down"])?;
                pause();
                stage.ip(&["link", "set", "strait0", "up"])
            }
            ClosedMishap::Rules => stage.flush_rules(),
            ClosedMishap::HalfRoutes => stage.rogue_routes(&["0.0.0.0/1", "128.0.0.0/1"]),
            ClosedMishap::HostRoute => stage.rogue_routes(&stage::BEYOND),
            ClosedMishap::OnlyIpv4 => Ok(()),
            ClosedMishap::Reload => stage.reload("fwmark = 7"),
            ClosedMishap::Up => Ok(()),
        })
    }
}

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, millis) = setting.effort.pick((3, 1000), (1, 300));
    let title = format!(
        "packets in the clear at the other end of the wire of a host with a full tunnel, IPv4 and IPv6, 1,000 a second each, \
         for {millis} ms after something goes wrong, {runs} runs, median (min-max)"
    );
    let mut section = BenchSection::new("closed", title, &COLUMNS);
    section.notes.push(
        "without the defence: no unreachable routes; no lockdown; `allow_outside = [\"::/0\"]`. Counted is everything but the \
         tunnel's datagrams, ARP and neighbour discovery"
            .to_owned(),
    );
    let window = Duration::from_millis(millis);
    for mishap in ClosedMishap::ALL {
        let mut cells: [RunValues; 3] = Default::default();
        for run in 1..=runs {
            section.before.push(settle()?);
            for defended in [true, false] {
                if !defended && !mishap.has_other() {
                    continue;
                }
                let mut stage = ClosedStage::up(&setting.program, mishap.node(defended), mishap.listed())?;
                if mishap == ClosedMishap::Up {
                    stage.down_and_up()?;
                }
                let sent = mishap.happens(&mut stage, defended, window)?;
                let clear = stage.in_the_clear()? as f64;
                progress("closed", run, mishap.name(), clear, "packets in the clear");
                if defended {
                    cells[0].push(sent as f64);
                    cells[1].push(clear);
                } else {
                    cells[2].push(clear);
                }
            }
        }
        section.judge(format!("{}: packets in the clear", mishap.name()), cells[1].clone(), NONE);
        section.row(mishap.name(), cells);
    }
    Ok(section)
}
