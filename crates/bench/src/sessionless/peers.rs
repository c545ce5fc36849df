//! A hub with many peers that have no session: memory, and how many new packet keys it takes and begins in a second. The hub is the
//! core without I/O: its receiver, its senders, and their associations.

mod core;

use std::fs;
use std::time::Duration;

use strait_clock::Random;
use strait_keying::PrivateKey;
use strait_lab::measure::{RunValues, settle};
use strait_testbed::{interrupt, sample};

pub(super) use self::core::wrong;
use self::core::{Hub, Remote, now};
use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// MiB, and new packet keys a second.
const MEMORY: Target = Target::AtMost(512.0);
const NEW_KEYS: Target = Target::AtLeast(5000.0);
const PEERS: u32 = 10_000;
/// Longer than a packet key lives.
const NEXT_KEY: Duration = Duration::from_secs(61);
/// What is measured, a row each.
const ROWS: [&str; 6] = [
    "memory of the hub, MiB",
    "first packet of a peer, Kij unknown: a second",
    "first packet of a key, Kij known: a second",
    "next packet with the same header: a second",
    "first packet to a peer, Kij unknown: a second",
    "first packet of a key to a peer, Kij known: a second",
];

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, peers) = setting.effort.pick((5, PEERS), (2, 1000));
    let title = format!(
        "a hub with {peers} peers without sessions, the core without I/O, one core's time, {runs} runs, median (min-max)"
    );
    let mut section = BenchSection::new("sessionless: peers", title, &["hub"]);
    section.notes.push(
        "memory that is the process's own (RssAnon), as it grows from a hub without peers to one that has received from and sent to all, \
         in the first run; a mark counts as written at once; peers in random order"
            .to_owned(),
    );
    let mut values: [RunValues; ROWS.len()] = Default::default();
    for run in 1..=runs {
        section.before.push(settle()?);
        let measured = measure(peers, u64::try_from(run).unwrap_or(0))?;
        // What a run frees, the next one has without asking the system for it.
        let skipped = usize::from(run > 1);
        for ((values, value), name) in values.iter_mut().zip(measured).zip(ROWS).skip(skipped) {
            progress(section.name, run, name, value, "");
            values.push(value);
        }
    }
    section.judge(format!("memory with {peers} peers, MiB"), values[0].clone(), MEMORY);
    section.judge("new keys of peers, Kij known, a second", values[2].clone(), NEW_KEYS);
    section.judge("new keys to peers, Kij known, a second", values[5].clone(), NEW_KEYS);
    for (row, values) in ROWS.into_iter().zip(values) {
        section.row(row, [values]);
    }
    Ok(section)
}

fn measure(peers: u32, seed: u64) -> Result<[f64; ROWS.len()], Error> {
    let mut random = Random::new(sample::DEFAULT_SEED.wrapping_add(seed));
    let hub = identity(u32::MAX);
    let public = hub.public();
    // All that others have is there before the hub is, and until it is measured.
    let mut remotes = Vec::new();
    for number in 0..peers {
        remotes.push(Remote::new(identity(number), &public, number)?);
    }
    let keys: Vec<_> = remotes.iter().map(|remote| remote.own.identity.public()).collect();
    let mut order: Vec<u32> = (0..peers).collect();
    shuffle(&mut order, &mut random);
    let mut datagrams = Vec::with_capacity(order.len());
    for number in &order {
        datagrams.push(remotes[*number as usize].datagram(now(Duration::ZERO))?);
    }
    let before = own_memory()?;
    let mut hub = Hub::new(hub, &keys);
    let first = hub.take_all(&mut datagrams)?;
    let first_out = hub.send_all(&order, &keys)?;
    let memory = (own_memory()? - before) / 1024.0;
    interrupt::check()?;
    // The same keys again, with their headers.
    let mut datagrams = Vec::with_capacity(order.len());
    for number in &order {
        datagrams.push(remotes[*number as usize].datagram(now(hub.at))?);
    }
    let same = hub.take_all(&mut datagrams)?;
    hub.at = NEXT_KEY;
    shuffle(&mut order, &mut random);
    let mut datagrams = Vec::with_capacity(order.len());
    for number in &order {
        datagrams.push(remotes[*number as usize].datagram(now(hub.at))?);
    }
    let next = hub.take_all(&mut datagrams)?;
    let next_out = hub.send_all(&order, &keys)?;
    let rate = |took: Duration| f64::from(peers) / took.as_secs_f64();
    Ok([memory, rate(first), rate(next), rate(same), rate(first_out), rate(next_out)])
}

/// The key of the peer with this number, or of the hub.
pub(super) fn identity(number: u32) -> PrivateKey {
    let mut seed = [0x5a; 32];
    seed[..4].copy_from_slice(&number.to_be_bytes());
    PrivateKey::generate(&seed)
}

fn shuffle(order: &mut [u32], random: &mut Random) {
    for at in (1..order.len()).rev() {
        let other = usize::try_from(random.below(at as u64 + 1)).unwrap_or(0);
        order.swap(at, other);
    }
}

/// Memory of this process that is its own, in KiB.
fn own_memory() -> Result<f64, Error> {
    let status =
        fs::read_to_string("/proc/self/status").map_err(Error::doing("read this process's status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
    number.ok_or_else(|| wrong("RssAnon"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_hub_takes_and_sends_all() {
        let values = measure(20, 1).unwrap();
        assert!(values[1..].iter().all(|rate| *rate > 0.0), "{values:?}");
    }
}
