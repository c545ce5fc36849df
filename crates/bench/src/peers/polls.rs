//! Sparse packets: a question and an answer twice a second, and everything that crosses the link meanwhile.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use strait_clock::Random;
use strait_lab::measure::{RunValues, settle};
use strait_testbed::{Namespace, interrupt, listen, sample};

use super::links::LINKS;
use super::measure::is_interrupt;
use super::programs::PeerPrograms;
use super::stage::PeerStage;
use super::way::PeerWay;
use crate::error::Error;
use crate::payload::{PayloadKind, SensorStation};
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;

/// Bytes of a question and of an answer.
const LEN: usize = 60;
/// Between two questions,
const GAP: Duration = Duration::from_millis(500);
/// by which so many milliseconds they come early or late at most.
const JITTER: u64 = 100;
/// Questions before those that count: sessions are new, and what tunnels say once is said.
const WARM_UP: usize = 20;
/// Until the last answer is there and has been acknowledged.
const TAIL: Duration = Duration::from_secs(1);
const COLUMNS: [&str; 3] = ["wire bytes an exchange", "Strait / it", "answered, %"];

/// What came of the questions over one link.
#[derive(Clone, Copy, Debug)]
struct PollRun {
    /// Bytes of outer IP packets, both ways, for each question and its answer.
    wire: f64,
    answered: f64,
}

/// Measures all ways at the same time, over links like the base.
pub(super) fn run(setting: &BenchSetup, programs: &PeerPrograms) -> Result<BenchSection, Error> {
    let (runs, seconds) = setting.effort.pick((2, 40), (1, 8));
    let [base, ..] = LINKS;
    let title = format!(
        "{}: a question and an answer of {LEN} bytes over UDP twice a second, bytes of outer IP packets both ways, {runs} runs of \
         {seconds} s, median (min-max)",
        base.path
    );
    let mut section = BenchSection::new("peers: sparse", title, &COLUMNS);
    let is_wanted = |way: &PeerWay| programs.has(*way) && way.is_asked_for(&setting.tunnels);
    let ways: Vec<PeerWay> = PeerWay::ALL.into_iter().filter(is_wanted).collect();
    let mut samples: Vec<[RunValues; 2]> = ways.iter().map(|_| Default::default()).collect();
    for run in 1..=runs {
        section.before.push(settle()?);
        let found = all(setting, programs, &ways, (run as u64, seconds))?;
        for ((way, found), [wire, answered]) in ways.iter().zip(found).zip(&mut samples) {
            let none = PollRun { wire: f64::NAN, answered: f64::NAN };
            let found = found.unwrap_or_else(|why| {
                section.notes.push(format!("{}, run {run}: {why}", way.name()));
                none
            });
            progress("peers", run, &format!("sparse, {}", way.name()), found.wire, "bytes an exchange");
            wire.push(found.wire);
            answered.push(found.answered);
        }
    }
    let place = ways.iter().position(|way| *way == PeerWay::Strait).unwrap_or_default();
    let ours = samples.get(place).map(|[wire, _]| wire.clone()).unwrap_or_default();
    for (way, [wire, answered]) in ways.iter().zip(samples) {
        let ratio = ours.over(&wire);
        section.row(way.name(), [wire, ratio, answered]);
    }
    section.notes.push(format!(
        "all at the same time, each over a link of its own, after {WARM_UP} exchanges that do not count; reports and keep-alives count"
    ));
    Ok(section)
}

/// When questions are asked, the same for all.
fn times(count: usize) -> Vec<Duration> {
    let mut random = Random::new(sample::DEFAULT_SEED);
    let at = |number: usize| {
        let late = Duration::from_millis(random.below(2 * JITTER + 1));
        GAP * u32::try_from(number).unwrap_or(u32::MAX) + late
    };
    (0..count).map(at).collect()
}

fn all(
    setting: &BenchSetup,
    programs: &PeerPrograms,
    ways: &[PeerWay],
    (seed, seconds): (u64, u64),
) -> Result<Vec<Result<PollRun, Error>>, Error> {
    let [base, ..] = LINKS;
    let mut stages = Vec::new();
    for way in ways {
        match PeerStage::set(setting, programs, base.path, *way, seed) {
            Err(error) if is_interrupt(&error) => return Err(error),
            set => stages.push(set),
        }
    }
    let count = usize::try_from(Duration::from_secs(seconds).as_millis() / GAP.as_millis()).unwrap_or(1);
    thread::scope(|scope| {
        let ask = |stage| scope.spawn(move || exchange(stage, count));
        let running: Vec<_> = stages.into_iter().map(|stage| stage.map(Arc::new)).collect();
        let threads: Vec<_> =
            running.iter().map(|stage| stage.as_ref().map(|stage| ask(Arc::clone(stage)))).collect();
        let mut found = Vec::new();
        for (thread, way) in threads.into_iter().zip(ways) {
            found.push(match thread {
                Err(why) => Err(Error::NoTunnel { tunnel: way.name(), why: why.to_string() }),
                Ok(thread) => {
                    let silent = |_| Err(Error::Silent { what: "a poll", way: way.name().to_owned() });
                    thread.join().unwrap_or_else(silent)
                }
            });
        }
        match found.iter().position(|it| it.as_ref().is_err_and(is_interrupt)) {
            Some(at) => found.swap_remove(at).map(|_| Vec::new()),
            None => Ok(found),
        }
    })
}

/// Questions that do not count, and `count` that do.
fn exchange(stage: Arc<PeerStage>, count: usize) -> Result<PollRun, Error> {
    let hosts = &stage.hosts;
    let [client, server] = stage.sockets()?;
    let heard = client.try_clone().map_err(Error::doing("share a socket"))?;
    let (stop, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let answering = hosts.b.spawn({
        let stop = Arc::clone(&stop);
        let mut station = SensorStation::new(PayloadKind::Modbus);
        move || {
            listen(&server, 2 * LEN, &stop, |_, from| {
                server.send_to(&message(&mut station), from).map(|_| ())
            })
        }
    })?;
    let hearing = hosts.a.spawn({
        let (stop, answers) = (Arc::clone(&stop), Arc::clone(&answers));
        move || {
            listen(&heard, 2 * LEN, &stop, |_, _| {
                answers.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        }
    });
    let mut station = SensorStation::new(PayloadKind::Snmp);
    let mut measure = || -> Result<PollRun, Error> {
        ask(&client, &mut station, WARM_UP)?;
        let before = (stage.wire()?, answers.load(Ordering::Relaxed));
        ask(&client, &mut station, count)?;
        let came = answers.load(Ordering::Relaxed) - before.1;
        let wire = stage.wire()? - before.0;
        Ok(PollRun { wire: wire as f64 / count as f64, answered: came as f64 * 100.0 / count as f64 })
    };
    let measured = measure();
    stop.store(true, Ordering::Relaxed);
    Namespace::join(answering, "answer questions")?;
    Namespace::join(hearing?, "hear answers")?;
    measured
}

/// Asks at the times, and waits for what follows the last question.
fn ask(client: &UdpSocket, station: &mut SensorStation, count: usize) -> Result<(), Error> {
    let begin = Instant::now();
    for at in times(count) {
        interrupt::pause(at.saturating_sub(begin.elapsed()))?;
        // Where there is no room, as on any network, it is lost.
        let _ = client.send(&message(station));
    }
    Ok(interrupt::pause(TAIL)?)
}

/// What a station says next, in as many bytes as all messages have.
fn message(station: &mut SensorStation) -> Vec<u8> {
    let (_, mut bytes) = station.answer();
    bytes.resize(LEN, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_come_twice_a_second_at_times_that_stay_the_same() {
        let asked = times(20);
        assert_eq!(asked, times(20));
        assert!(asked.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(asked[19] >= GAP * 19 && asked[19] <= GAP * 19 + Duration::from_millis(2 * JITTER));
    }

    #[test]
    fn every_message_has_the_same_length_and_they_differ() {
        let mut station = SensorStation::new(PayloadKind::Modbus);
        let messages: Vec<Vec<u8>> = (0..20).map(|_| message(&mut station)).collect();
        assert!(messages.iter().all(|it| it.len() == LEN));
        assert!(messages.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
