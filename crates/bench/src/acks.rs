//! A download whose acknowledgements go back over a link that is thinner by far: what each of them takes there.

use std::sync::Arc;
use std::time::Duration;

use strait_lab::measure::{RunValues, settle};
use strait_testbed::{Extra, LinkSpec, LinkTraffic, Stream, interrupt};

use crate::content::{generated, noise};
use crate::error::Error;
use crate::random::rate;
use crate::report::{BenchSection, progress};
use crate::stage::{BenchHosts, BenchRoute, BenchSetup, NAMES, rule};
use crate::target::Target;

/// The link down and up, in Mbit/s.
const LINK: [f64; 2] = [10.0, 0.128];
/// Bytes on the wire of one acknowledgement, as IP packets.
const EACH: Target = Target::AtMost(25.0);
/// Bytes of a frame beside its IP packet.
const ETHERNET: u64 = 14;
/// What the target is of. Text comes four times as fast and in blocks of many packets, which a host acknowledges as one: there is less to
/// acknowledge, and a link that has room holds no packet back.
const JUDGED: &str = "random data";
/// Until queues are full and slow start is over.
const WARM_UP: Duration = Duration::from_secs(3);
/// Until what the last stream left in queues has drained.
const DRAIN: Duration = Duration::from_secs(1);
/// Lines of `[link]`, a column each. What an acknowledgement takes is measured where each is sent.
const LINES: [&str; 4] =
    ["window = 1\nacks = \"all\"", "acks = \"all\"", "hold = \"20ms\"\nacks = \"all\"", ""];
const COLUMNS: [&str; 4] = ["window = 1, acks = all", "acks = all", "hold = 20 ms, acks = all", NAMES[1]];
/// Columns of whose acknowledgements each has to be cheap.
const CHEAP: core::ops::Range<usize> = 1..3;

/// What was measured of one tunnel, a value a run.
#[derive(Debug, Default)]
struct AcksRuns {
    /// Mbit/s down.
    rate: RunValues,
    /// Acknowledgements a second.
    count: RunValues,
    /// Wire bytes of each.
    each: RunValues,
    /// Wire bytes up for a thousand that come down.
    share: RunValues,
}

/// Both counters at one moment.
#[derive(Clone, Copy, Debug)]
struct AckCounters {
    link: LinkTraffic,
    packets: u64,
}

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, seconds) = setting.effort.pick((3, 6), (1, 3));
    let [down, up] = LINK;
    let title = format!(
        "one TCP download over {down} Mbit/s down and {up} Mbit/s up, compression on, {runs} runs of {seconds} s, median (min-max)"
    );
    let mut section = BenchSection::new("acks", title, &COLUMNS);
    let spec = LinkSpec { back: Some(rate(up)), ..LinkSpec::thin(rate(down)) };
    let rules = rule("auto", "");
    let set =
        |link| BenchHosts::set(&setting.program, spec, Extra { link, sections: &rules, ..Extra::default() });
    let stages = LINES.map(set).into_iter().collect::<Result<Vec<_>, _>>()?;
    for (name, content) in [(JUDGED, noise()), ("text", generated(1).bytes)] {
        let mut measured: [AcksRuns; 4] = Default::default();
        for run in 1..=runs {
            for ((stage, measured), column) in stages.iter().zip(&mut measured).zip(COLUMNS) {
                section.before.push(settle()?);
                let each = measured.note(stage, &content, Duration::from_secs(seconds))?;
                progress("acks", run, &format!("{name}, {column}"), each, "bytes each");
                interrupt::pause(DRAIN)?;
            }
        }
        tell(&mut section, name, &measured);
    }
    let counted = "wire bytes are those of outer IP packets, all that crosses that way counted";
    section.notes.push(counted.to_owned());
    Ok(section)
}

fn tell(section: &mut BenchSection, content: &str, measured: &[AcksRuns; 4]) {
    let cells = |of: fn(&AcksRuns) -> &RunValues| measured.iter().map(of).cloned().collect::<Vec<_>>();
    section.row(format!("{content}, download, Mbit/s"), cells(|it| &it.rate));
    section.row(format!("{content}, acknowledgements a second"), cells(|it| &it.count));
    section.row(format!("{content}, wire bytes each"), cells(|it| &it.each));
    section.row(format!("{content}, wire bytes up a kB of download"), cells(|it| &it.share));
    if content != JUDGED {
        return;
    }
    for (measured, column) in measured[CHEAP].iter().zip(&COLUMNS[CHEAP]) {
        section.judge(format!("{content}, {column}, wire bytes each"), measured.each.clone(), EACH);
    }
}

impl AcksRuns {
    /// One run; gives the wire bytes of an acknowledgement.
    fn note(&mut self, stage: &BenchHosts, content: &Arc<[u8]>, window: Duration) -> Result<f64, Error> {
        let stream = Stream {
            from: &stage.hosts().a,
            to: &stage.hosts().b,
            address: stage.any_port(BenchRoute::Strait),
            content,
            warm_up: WARM_UP,
            window,
        };
        let arrived = stream.run(|| look(stage))?;
        let crossed = arrived.after.link.since(arrived.before.link).back;
        let packets = (arrived.after.packets - arrived.before.packets) as f64;
        let wire = (crossed.bytes - ETHERNET * crossed.packets) as f64;
        let each = wire / packets;
        self.share.push(wire * 1e3 / arrived.bytes as f64);
        self.rate.push(arrived.rate() / 1e6);
        self.count.push(packets / arrived.took.as_secs_f64());
        self.each.push(each);
        Ok(each)
    }
}

/// What has crossed the link, and how many packets the receiver's tunnel has sent.
fn look(stage: &BenchHosts) -> Result<AckCounters, Error> {
    let [_, receiver] = stage.daemons();
    let shown = receiver.show()?;
    let packets = shown["peers"][0]["sent"]["packets"].as_u64().unwrap_or(0);
    Ok(AckCounters { link: stage.hosts().link.traffic()?, packets })
}
