//! What was measured of each tunnel over one link, as a table.

use std::thread;

use strait_lab::measure::{RunValues, settle};

use super::datagrams;
use super::links::PeerLink;
use super::measure::{PeerContent, PeerRun, described, is_interrupt};
use super::programs::PeerPrograms;
use super::stage::PeerStage;
use super::way::PeerWay;
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;

/// The first one is also what is drawn.
pub(super) const COLUMNS: [&str; 10] = [
    "text, Mbit/s",
    "Strait / it",
    "random, Mbit/s",
    "Strait / it",
    "datagrams arrived, %",
    "wire bytes a byte",
    "ping idle, ms",
    "beside random, above the RTT, ms",
    "95 of 100, ms",
    "pings lost, %",
];

/// Everything of one way, a value a run.
#[derive(Clone, Debug, Default)]
struct PeerRuns {
    text: RunValues,
    random: RunValues,
    delivered: RunValues,
    wire: RunValues,
    idle: RunValues,
    added: RunValues,
    slow: RunValues,
    lost: RunValues,
}

impl PeerRuns {
    fn push(&mut self, run: &PeerRun) {
        self.text.push(run.text);
        self.random.push(run.random);
        self.delivered.push(run.delivered);
        self.wire.push(run.wire);
        self.idle.push(run.idle);
        self.added.push(run.added);
        self.slow.push(run.slow);
        self.lost.push(run.lost);
    }

    /// A row, with ratios of `ours` to it, run by run.
    fn cells(self, ours: &PeerRuns) -> [RunValues; COLUMNS.len()] {
        let ratios = [&self.text, &self.random].map(|it| it.clone());
        let [text, random] = ratios;
        [
            self.text,
            ours.text.over(&text),
            self.random,
            ours.random.over(&random),
            self.delivered,
            self.wire,
            self.idle,
            self.added,
            self.slow,
            self.lost,
        ]
    }
}

/// Measures all ways over a link, run by run.
pub(super) fn run(
    setting: &BenchSetup,
    programs: &PeerPrograms,
    link: &PeerLink,
) -> Result<BenchSection, Error> {
    let runs = setting.effort.pick(link.runs, 1);
    let ways: Vec<PeerWay> =
        link.ways(&setting.tunnels).into_iter().filter(|way| programs.has(*way)).collect();
    let title = format!("{}: {}", link.path, described(setting, link, runs));
    let mut section = BenchSection::new(link.name, title, &COLUMNS);
    let content = PeerContent::new(setting.effort);
    let mut measured: Vec<(PeerWay, PeerRuns)> = ways.iter().map(|way| (*way, PeerRuns::default())).collect();
    for run in 1..=runs {
        for group in measured.chunks_mut(link.together) {
            section.before.push(settle()?);
            let ways: Vec<PeerWay> = group.iter().map(|(way, _)| *way).collect();
            for ((way, runs), found) in
                group.iter_mut().zip(together(setting, programs, link, &ways, run, &content)?)
            {
                tell(link, run, *way, &found);
                let troubles = found.troubles.iter().map(|why| format!("{}, run {run}: {why}", way.name()));
                section.notes.extend(troubles);
                runs.push(&found);
            }
        }
    }
    let ours = measured.iter().find(|(way, _)| *way == PeerWay::Strait).map(|(_, runs)| runs.clone());
    let ours = ours.unwrap_or_default();
    for (way, runs) in measured {
        section.row(way.name(), runs.cells(&ours));
    }
    section.notes.extend(notes(link));
    Ok(section)
}

/// One run of some ways at the same time, in their order.
fn together(
    setting: &BenchSetup,
    programs: &PeerPrograms,
    link: &PeerLink,
    ways: &[PeerWay],
    run: usize,
    content: &PeerContent,
) -> Result<Vec<PeerRun>, Error> {
    let mut stages = Vec::new();
    for way in ways {
        // By this thread: processes end with the one that started them.
        match PeerStage::set(setting, programs, link.path, *way, run as u64) {
            Err(error) if is_interrupt(&error) => return Err(error),
            set => stages.push(set),
        }
    }
    thread::scope(|scope| {
        let measure = |stage| scope.spawn(move || PeerRun::measure(stage, link, content));
        let running: Vec<_> = stages.iter().map(|stage| stage.as_ref().map(measure)).collect();
        let ended = running.into_iter().zip(ways).map(|(thread, way)| match thread {
            Err(why) => Ok(PeerRun::without(why)),
            Ok(thread) => {
                let silent = || Error::Silent { what: "a run", way: way.name().to_owned() };
                thread.join().map_err(|_| silent())?
            }
        });
        // All are waited for, whatever becomes of one.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

fn tell(link: &PeerLink, run: usize, way: PeerWay, found: &PeerRun) {
    let subject = |what: &str| format!("{}, {}, {what}", link.path, way.name());
    progress("peers", run, &subject("text"), found.text, "Mbit/s");
    progress("peers", run, &subject("random"), found.random, "Mbit/s");
    for why in &found.troubles {
        eprintln!("  peers, run {run}: {}: {why}", way.name());
    }
}

fn notes(link: &PeerLink) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(rate) = link.path.rate() {
        notes.push(format!(
            "datagrams of {} bytes of text, {:.0} a second one way; wire bytes are those of outer IP packets both ways",
            datagrams::LEN,
            datagrams::offered(Some(rate))
        ));
    }
    notes.push(
        "a stream that lost packets arrives in jumps: its rate may be off by what the link and its queue hold, the RTT and 300 ms of it"
            .to_owned(),
    );
    if link.together > 1 {
        notes.push(format!("{} at the same time, each over a link of its own", link.together));
    }
    notes.push(match link.path.rtt {
        Some(_) => {
            "the link is one of this program: rate, delay, a queue of 300 ms, loss each way".to_owned()
        }
        None => "the link is the kernel's (veth), with no rate and no delay".to_owned(),
    });
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_ratios_of_runs_next_to_each_other() {
        let run = |text: f64| PeerRun { text, random: 2.0, lost: 0.0, ..PeerRun::NOTHING };
        let (mut ours, mut theirs) = (PeerRuns::default(), PeerRuns::default());
        for (our, their) in [(8.0, 2.0), (9.0, 3.0)] {
            ours.push(&run(our));
            theirs.push(&run(their));
        }
        let cells = theirs.cells(&ours);
        assert_eq!(cells[0].values(), [2.0, 3.0]);
        assert_eq!(cells[1].values(), [4.0, 3.0]);
        assert_eq!(cells[3].values(), [1.0, 1.0]);
        assert!(cells[4].spread().is_none() && cells[9].spread().is_some());
    }

    #[test]
    fn a_tunnel_that_does_not_come_up_is_a_row_without_values_and_says_why() {
        let why = Error::NoTunnel { tunnel: "tinc, zlib", why: "no device".to_owned() };
        let run = PeerRun::without(&why);
        assert_eq!(run.troubles, ["tinc, zlib did not come up: no device"]);
        let mut runs = PeerRuns::default();
        runs.push(&run);
        assert!(runs.cells(&PeerRuns::default()).iter().all(|cell| cell.spread().is_none()));
    }
}
