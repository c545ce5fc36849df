//! Both ends in memory, one after the other on one thread: what ENskip itself costs.

use std::sync::Arc;
use std::time::Duration;

use strait_clock::Random;

use crate::enskip::packet::{PACKET_MAX, PAYLOAD, PacketError, SkipReceiver, SkipSender, SkipSettings};
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues, ThreadMoment};

/// Packets between two looks at the clock, at first: 21 KB.
pub(super) const BATCH: usize = 16;
/// Looks at the clock in a run, at most twice as many.
pub(super) const LOOKS: u32 = 8;
/// What packet keys follow from.
const SEED: u64 = 57;

/// A file on its way through both ends, again and again.
pub(super) struct MemoryRun {
    settings: SkipSettings,
    file: Arc<[u8]>,
    sender: SkipSender,
    receiver: SkipReceiver,
    batch: usize,
}

/// Memory for runs: the same for all, as where bytes are can change how fast some algorithms go, RC4 by a quarter.
pub(super) struct MemoryRoom {
    /// A copy of the file.
    file: Vec<u8>,
    packet: Vec<u8>,
    /// What arrived of the file so far.
    arrived: Vec<u8>,
}

impl MemoryRoom {
    /// Room for runs with files of up to so many bytes.
    pub(super) fn new(len: usize) -> MemoryRoom {
        let room = Vec::with_capacity;
        MemoryRoom { file: room(len), packet: room(PACKET_MAX), arrived: room(len) }
    }

    /// Nothing has arrived of the file yet.
    fn begin(&mut self, file: &[u8]) {
        self.file.clear();
        self.file.extend_from_slice(file);
        self.arrived.clear();
    }
}

impl MemoryRun {
    /// Both ends, with nothing sent.
    pub(super) fn new(settings: SkipSettings, file: &Arc<[u8]>) -> Result<MemoryRun, Error> {
        let refused = refusal(settings, "begin");
        let sender = SkipSender::new(settings, Random::new(SEED)).map_err(&refused)?;
        let receiver = SkipReceiver::new(settings).map_err(&refused)?;
        Ok(MemoryRun { settings, file: Arc::clone(file), sender, receiver, batch: BATCH })
    }

    /// kbytes/s by processor time, of a run that takes so long.
    fn run(&mut self, room: &mut MemoryRoom, least: Duration) -> Result<f64, Error> {
        room.begin(&self.file);
        let (mut took, mut bytes) = (Duration::ZERO, 0);
        while took < least {
            let start = ThreadMoment::now();
            for _ in 0..self.batch {
                bytes += self.next(room)?;
            }
            let passed = start.elapsed();
            if passed < least / LOOKS {
                self.batch *= 2;
            }
            took += passed.max(Duration::from_nanos(1));
        }
        Ok(kbytes(bytes, took))
    }

    /// Packets until it is over; gives the bytes of the file in them.
    pub(super) fn run_until(
        &mut self,
        room: &mut MemoryRoom,
        is_over: impl Fn() -> bool,
    ) -> Result<usize, Error> {
        room.begin(&self.file);
        let mut bytes = 0;
        while !is_over() {
            for _ in 0..BATCH {
                bytes += self.next(room)?;
            }
        }
        Ok(bytes)
    }

    fn next(&mut self, room: &mut MemoryRoom) -> Result<usize, Error> {
        self.packet(room).map_err(refusal(self.settings, "carry a file"))
    }

    /// One packet; gives the bytes of the file in it.
    fn packet(&mut self, room: &mut MemoryRoom) -> Result<usize, PacketError> {
        let MemoryRoom { file, packet, arrived } = room;
        if arrived.len() == file.len() {
            // All of it is there: what arrived is looked at where it costs little, at its end.
            if arrived.last_chunk::<PAYLOAD>() != file.last_chunk::<PAYLOAD>() {
                return Err(PacketError::Text);
            }
            arrived.clear();
        }
        let rest = &file[arrived.len()..];
        let part = &rest[..PAYLOAD.min(rest.len())];
        self.sender.seal(std::hint::black_box(part), packet)?;
        let opened = self.receiver.open(std::hint::black_box(packet))?;
        arrived.extend_from_slice(opened);
        Ok(opened.len())
    }
}

/// Runs each so often, all of them in turn, so that all see the same machine; a first turn does not count. Gives kbytes/s of each.
pub(super) fn in_turn(
    timer: RepeatTimer,
    runs: &mut [MemoryRun],
    mut turn: impl FnMut(usize),
) -> Result<Vec<RunValues>, Error> {
    let mut all = vec![RunValues::default(); runs.len()];
    let mut room = MemoryRoom::new(runs.iter().map(|run| run.file.len()).max().unwrap_or(0));
    for round in 0..=timer.repeats {
        turn(round);
        for (run, values) in runs.iter_mut().zip(&mut all) {
            let rate = run.run(&mut room, timer.least)?;
            if round > 0 {
                values.push(rate);
            }
        }
    }
    Ok(all)
}

/// What `ftp` prints: 1,024 bytes each, a second.
pub(super) fn kbytes(bytes: usize, took: Duration) -> f64 {
    bytes as f64 / 1024.0 / took.as_secs_f64()
}

/// An end that does not do what it is measured at.
fn refusal(settings: SkipSettings, doing: &'static str) -> impl Fn(PacketError) -> Error {
    move |error| Error::refused(settings.combination, doing)(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enskip::algorithm::Combination;

    #[test]
    fn each_is_run_in_turn_and_the_file_arrives() {
        let file: Arc<[u8]> = (0..10 * PAYLOAD + 7).map(|at| at as u8).collect();
        let mut runs: Vec<MemoryRun> = Combination::all()
            .map(|combination| MemoryRun::new(SkipSettings::of(combination), &file).unwrap())
            .collect();
        let mut rounds = Vec::new();
        let timer = RepeatTimer { repeats: 2, least: Duration::from_micros(100) };
        let all = in_turn(timer, &mut runs, |round| rounds.push(round)).unwrap();
        assert_eq!(rounds, [0, 1, 2]);
        assert!(
            all.iter().all(|values| values.values().len() == 2 && values.values().iter().all(|it| *it > 0.0))
        );
        for run in &mut runs {
            let mut room = MemoryRoom::new(file.len());
            room.begin(&file);
            for part in 0..=10 {
                assert_eq!(run.packet(&mut room).unwrap(), if part < 10 { PAYLOAD } else { 7 });
            }
            assert_eq!(room.arrived[..], file[..]);
            // The next file begins only when this one was right.
            room.arrived[10 * PAYLOAD] ^= 1;
            assert_eq!(run.packet(&mut room), Err(PacketError::Text));
        }
    }

    #[test]
    fn a_kbyte_is_1024_bytes() {
        assert_eq!(kbytes(2048, Duration::from_millis(500)), 4.0);
    }
}
