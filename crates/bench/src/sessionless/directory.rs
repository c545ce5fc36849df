//! Look-ups of certificates: how long they take, and what the directory needs for that.

use std::time::Instant;

use strait_clock::Random;
use strait_keying::directory::{Answer, Certificate, Question};
use strait_lab::measure::{RunValues, settle};
use strait_testbed::{interrupt, sample};

use super::fleet::{Fleet, FleetStore, certificates, failed, open};
use crate::echo::within;
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// Milliseconds of 99 of 100 look-ups, without etcd and with it.
const LOOK_UP: [Target; 2] = [Target::AtMost(2.0), Target::AtMost(10.0)];
/// Clients at once.
const TOGETHER: usize = 16;
/// Look-ups of a run, below what a source may ask at once, so that none waits for its turn.
const QUESTIONS: usize = 1600;
/// Until the source may ask as much again.
const REFILL: std::time::Duration = std::time::Duration::from_secs(1);
/// What is measured, a row each.
const ROWS: [&str; 9] = [
    "put, s",
    "until nodes find the last one, s",
    "one look-up at a time, median, ms",
    "99 of 100 within, ms",
    "16 at once, median, ms",
    "99 of 100 within, ms ",
    "memory of the directory, MiB",
    "file of its store, MiB",
    "etcd on the disk, MiB",
];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (count, runs) = setting.effort.pick((100_000, 7), (5_000, 2));
    let title = format!(
        "{count} certificates in a directory; look-ups of random ones over TCP on the same host, {QUESTIONS} a run, {runs} runs, median \
         (min-max)"
    );
    let mut section =
        BenchSection::new("sessionless: directory", title, &FleetStore::ALL.map(FleetStore::name));
    section.notes.push(
        "over etcd, certificates are put at one directory, and looked up at another; memory that is the process's own (RssAnon)".to_owned(),
    );
    let all = certificates(count)?;
    let mut values: [[RunValues; 2]; ROWS.len()] = Default::default();
    for (at, store) in FleetStore::ALL.into_iter().enumerate() {
        if let Some(why) = store.missing() {
            section.notes.push(why);
            continue;
        }
        let measured =
            Fleet::with(setting, store, |fleet| measure(&mut section, fleet, (&all, runs, store.name())))?;
        for (values, measured) in values.iter_mut().zip(measured) {
            values[at] = measured;
        }
    }
    for (at, store) in FleetStore::ALL.into_iter().enumerate() {
        let figure = |how: &str| format!("99 of 100 look-ups, {}, {how}, ms", store.name());
        section.judge(figure("one at a time"), values[3][at].clone(), LOOK_UP[at]);
        section.judge(figure("16 at once"), values[5][at].clone(), LOOK_UP[at]);
    }
    for (row, values) in ROWS.into_iter().zip(values) {
        section.row(row.trim_end(), values);
    }
    Ok(section)
}

fn measure(
    section: &mut BenchSection,
    fleet: &Fleet,
    (all, runs, name): (&[Certificate], usize, &str),
) -> Result<[RunValues; ROWS.len()], Error> {
    let mut values: [RunValues; ROWS.len()] = Default::default();
    let begun = Instant::now();
    values[0].push(fleet.put(all)?.as_secs_f64());
    for last in all.iter().rev().take(1) {
        fleet.wait_for(last)?;
    }
    values[1].push(begun.elapsed().as_secs_f64());
    progress(section.name, 0, name, values[0].values()[0], "s until all are put");
    for run in 1..=runs {
        section.before.push(settle()?);
        let seed = sample::DEFAULT_SEED.wrapping_add(run as u64);
        for (at, clients) in [(2, 1), (4, TOGETHER)] {
            interrupt::pause(REFILL)?;
            let mut times = look_up(fleet, all, (clients, seed))?;
            values[at].push(within(&mut times, 50));
            let worst = within(&mut times, 99);
            values[at + 1].push(worst);
            progress(section.name, run, name, worst, "ms for 99 of 100");
        }
    }
    values[6].push(fleet.memory()?);
    let [store, etcd] = fleet.stored()?;
    values[7].push(store);
    if etcd > 0.0 {
        values[8].push(etcd);
    }
    Ok(values)
}

/// Milliseconds of each of the look-ups of `clients` at once, each on a connection of its own. What is found is compared.
fn look_up(fleet: &Fleet, all: &[Certificate], (clients, seed): (usize, u64)) -> Result<Vec<f64>, Error> {
    let server = fleet.asked().server();
    let one = |client: usize| -> Result<Vec<f64>, Error> {
        let mut random = Random::new(seed.wrapping_mul(31).wrapping_add(client as u64));
        let mut connection = open(server)?;
        let mut times = Vec::with_capacity(QUESTIONS / clients);
        for _ in 0..QUESTIONS / clients {
            let which = usize::try_from(random.below(all.len() as u64)).unwrap_or(0);
            let question = Question::Find(all[which].key_name());
            let begun = Instant::now();
            let answer = connection.ask(&question).map_err(failed)?;
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
            if answer != Answer::Certificate(all[which].as_bytes().into()) {
                return Err(Error::Silent {
                    what: "the certificate that was put",
                    way: "a look-up".to_owned(),
                });
            }
        }
        Ok(times)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|client| scope.spawn(move || one(client))).collect();
        let mut times = Vec::with_capacity(QUESTIONS);
        for thread in threads {
            times.extend(thread.join().unwrap_or_else(|_| Ok(vec![f64::NAN]))?);
        }
        Ok(times)
    })
}
