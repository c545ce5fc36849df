//! Measures how fast units pass where nothing limits them.
//!
//!     cargo run --release -p strait-stream --example unit_speed FILE...
//!
//! Each file passes in pieces of 1 MiB, each hashed by BLAKE3, as a file that is sent is: copied through memory (`plain`), in
//! units that are all stored or all LZ4, and by a writer that chooses. First on one thread through memory (`memory`), then through
//! a pair of sockets to a second thread, a third compressing (`socket`). Prints MB/s of the best of several rounds.

#![allow(clippy::disallowed_methods, clippy::unwrap_used, missing_docs)]

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Instant;

use strait_clock::Time;
use strait_compress::{Calibration, Codecs, Method, calibrate};
use strait_stream::unit::{UNIT_HEADER_LEN, UnitCoding, UnitContext, UnitHeader, UnitReader, UnitWriter};

const PIECE: usize = 1 << 20;
/// Bytes of a unit where all are alike: as many as the writer's.
const UNIT: usize = 256 << 10;
const ROUNDS: usize = 15;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Plain,
    Stored,
    Lz4,
    Auto,
}

/// Bytes from one half to the other, on one thread.
#[derive(Clone, Default)]
struct Memory(Rc<RefCell<(Vec<u8>, usize)>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Memory {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let (held, read) = &mut *self.0.borrow_mut();
        let len = bytes.len().min(held.len() - *read);
        bytes[..len].copy_from_slice(&held[*read..*read + len]);
        *read += len;
        if *read == held.len() {
            held.clear();
            *read = 0;
        }
        Ok(len)
    }
}

/// Units that are all alike.
struct Fixed<W> {
    inner: W,
    codecs: Codecs,
    lz4: bool,
    unit: Vec<u8>,
}

impl<W: Write> Write for Fixed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for raw in bytes.chunks(UNIT) {
            self.unit.resize(UNIT_HEADER_LEN + raw.len(), 0);
            let room = &mut self.unit[UNIT_HEADER_LEN..];
            let most = room.len() - 1;
            let made =
                if self.lz4 { self.codecs.compress(Method::LZ4, raw, &mut room[..most]) } else { None };
            let (coding, payload) = match made {
                Some(len) => (UnitCoding::Lz4, &room[..len]),
                None => (UnitCoding::Stored, raw),
            };
            let (anew, context, len) = (false, UnitContext::Data, payload.len());
            let header = UnitHeader { coding, anew, context, payload: len, raw: raw.len() }.bytes();
            self.inner.write_all(&header)?;
            self.inner.write_all(payload)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Reads until nothing is there.
fn drain(reader: &mut impl Read, room: &mut [u8]) -> u64 {
    let mut read = 0;
    loop {
        match reader.read(room).unwrap() {
            0 => return read,
            len => read += len as u64,
        }
    }
}

/// A round on one thread: what else to flush is there with the last piece.
fn pass(data: &[u8], writer: &mut impl Write, mut reader: impl Read) -> u64 {
    let (mut room, mut hasher, mut read) = (vec![0; PIECE], blake3::Hasher::new(), 0);
    for piece in data.chunks(PIECE) {
        hasher.update(piece);
        writer.write_all(piece).unwrap();
        read += drain(&mut reader, &mut room);
    }
    writer.flush().unwrap();
    read + drain(&mut reader, &mut room)
}

fn send(data: &[u8], writer: &mut impl Write) {
    let mut hasher = blake3::Hasher::new();
    for piece in data.chunks(PIECE) {
        hasher.update(piece);
        writer.write_all(piece).unwrap();
    }
    writer.flush().unwrap();
}

fn clock() -> impl Fn() -> Time + Send + Sync + 'static {
    let began = Instant::now();
    move || Time::from_nanos(began.elapsed().as_nanos() as u64)
}

fn fixed<W>(inner: W, way: Way) -> Fixed<W> {
    Fixed { inner, codecs: Codecs::default(), lz4: way == Way::Lz4, unit: Vec::new() }
}

/// Bytes that come out, seconds, and what the writer ends with.
fn in_memory(data: &[u8], way: Way, calibration: &Calibration) -> (u64, f64, String) {
    let memory = Memory::default();
    let began = Instant::now();
    let mut how = String::new();
    let read = match way {
        Way::Plain => pass(data, &mut memory.clone(), memory),
        Way::Stored | Way::Lz4 => pass(data, &mut fixed(memory.clone(), way), UnitReader::new(memory)),
        Way::Auto => {
            let mut writer = UnitWriter::new(memory.clone(), clock(), calibration.clone());
            let read = pass(data, &mut writer, UnitReader::new(memory));
            how = ends(&writer);
            read
        }
    };
    (read, began.elapsed().as_secs_f64(), how)
}

fn ends<W: Write>(writer: &UnitWriter<W>) -> String {
    let (method, totals) = (writer.method(), writer.totals());
    let rate = writer.rate().map_or(0.0, |rate| rate.as_bits() / 1e6);
    format!("{method}, {:.2} to 1, {rate:.0} Mbit/s", totals.raw as f64 / totals.wire as f64)
}

fn by_socket(data: &[u8], way: Way, calibration: &Calibration) -> (u64, f64, String) {
    let (mut here, there) = UnixStream::pair().unwrap();
    let began = Instant::now();
    let mut how = String::new();
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut room = vec![0; PIECE];
            if way == Way::Plain {
                drain(&mut &there, &mut room)
            } else {
                drain(&mut UnitReader::new(there), &mut room)
            }
        });
        match way {
            Way::Plain => send(data, &mut here),
            Way::Stored | Way::Lz4 => send(data, &mut fixed(&mut here, way)),
            Way::Auto => {
                let (mut writer, worker) = UnitWriter::with_worker(&mut here, clock(), calibration.clone());
                scope.spawn(move || worker.run());
                send(data, &mut writer);
                how = ends(&writer);
            }
        }
        drop(here);
        reader.join().unwrap()
    });
    (read, began.elapsed().as_secs_f64(), how)
}

fn main() {
    let began = Instant::now();
    let sample = move || began.elapsed().as_nanos() as u64;
    let calibration = calibrate(&mut Codecs::default(), sample);
    for name in std::env::args().skip(1) {
        let data = std::fs::read(&name).unwrap();
        for (sink, run) in [("memory", in_memory as fn(&[u8], Way, &Calibration) -> _), ("socket", by_socket)]
        {
            print!("{name} {sink}:");
            let mut best =
                [(0.0, String::new()), (0.0, String::new()), (0.0, String::new()), (0.0, String::new())];
            // Round after round, so that what else the machine does is the same for all.
            for _ in 0..ROUNDS {
                for (way, best) in [Way::Plain, Way::Stored, Way::Lz4, Way::Auto].into_iter().zip(&mut best) {
                    let (read, seconds, how) = run(&data, way, &calibration);
                    assert_eq!(read, data.len() as u64, "{way:?}");
                    let speed = data.len() as f64 / 1e6 / seconds;
                    if speed > best.0 {
                        *best = (speed, how);
                    }
                }
            }
            let [plain, stored, lz4, (auto, how)] = best;
            println!(
                " plain {:.0}, stored {:.0}, LZ4 {:.0}, auto {auto:.0} ({how})",
                plain.0, stored.0, lz4.0
            );
        }
    }
}
