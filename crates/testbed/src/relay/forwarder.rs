//! The loop of a relay: takes frames from two sockets and sends each when it is due.
#![allow(unsafe_code)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use super::FrameDirection;
use super::carrier::FrameCarrier;
use crate::frame::{FrameSocket, wait};

/// The longest frame that is relayed: an Ethernet header and 65,535 bytes.
const FRAME_MAX: usize = 14 + 65_535;

/// How soon the relay notices frames to add and the wish to end.
const TICK: Duration = Duration::from_millis(5);

/// Frames wait at most in this number; more are lost, as in any queue. Full ones take 100 MB: 600 ms at 1 Gbit/s, and a queue
/// as long.
const WAITING_MAX: usize = 1 << 16;

/// Frames that are read from a socket before it is looked at what is due.
const AT_ONCE: usize = 32;

/// How much later than asked the kernel may wake the relay, in nanoseconds; its default is 50 us.
const TIMER_SLACK: libc::c_ulong = 1_000;

/// The relay's priority, where it may choose: a wire does not wait until hosts leave it a processor.
const NICE: i32 = -15;

/// A frame that waits: when it is due, in which order it came, where it goes, what it is.
type WaitingFrame = Reverse<(Instant, u64, FrameDirection, Vec<u8>)>;

/// Frames that wait until they are due; of two that are due at the same time the first that came goes first.
#[derive(Debug, Default)]
pub(super) struct FrameQueue {
    frames: BinaryHeap<WaitingFrame>,
    count: u64,
}

impl FrameQueue {
    /// Keeps a frame until it is `due`.
    pub(super) fn push(&mut self, due: Instant, direction: FrameDirection, frame: &[u8]) {
        if self.frames.len() < WAITING_MAX {
            self.count += 1;
            self.frames.push(Reverse((due, self.count, direction, frame.to_vec())));
        }
    }

    fn pop(&mut self, now: Instant) -> Option<(FrameDirection, Vec<u8>)> {
        self.frames.peek().filter(|Reverse((due, ..))| *due <= now)?;
        self.frames.pop().map(|Reverse((_, _, direction, frame))| (direction, frame))
    }

    /// How long nothing is due, of the queue and of a carrier that asks to be called then.
    fn pause(&self, asks_at: Option<Instant>) -> Duration {
        let due = self.frames.peek().map(|Reverse((due, ..))| *due).into_iter().chain(asks_at).min();
        due.map_or(TICK, |due| due.saturating_duration_since(Instant::now()).min(TICK))
    }
}

pub(super) struct Forwarder<C> {
    sockets: [FrameSocket; 2],
    added: Receiver<(FrameDirection, Vec<u8>)>,
    carry: C,
    queue: FrameQueue,
}

impl<C: FrameCarrier> Forwarder<C> {
    /// Between the first host's socket and the second's; `carry` puts into the queue what becomes of a frame, of which it learns
    /// when it was sent.
    pub(super) fn new(
        sockets: [FrameSocket; 2],
        added: Receiver<(FrameDirection, Vec<u8>)>,
        carry: C,
    ) -> Forwarder<C> {
        Forwarder { sockets, added, carry, queue: FrameQueue::default() }
    }

    pub(super) fn run(mut self) -> io::Result<()> {
        be_punctual();
        let mut buffer = vec![0_u8; FRAME_MAX];
        let mut asks_at = None;
        loop {
            wait(&self.sockets, self.queue.pause(asks_at))?;
            for (index, direction) in [(0, FrameDirection::There), (1, FrameDirection::Back)] {
                for _ in 0..AT_ONCE {
                    let Some((length, sent_at)) = self.sockets[index].receive_timed(&mut buffer)? else {
                        break;
                    };
                    self.carry.carry((direction, sent_at), &buffer[..length], &mut self.queue);
                }
            }
            asks_at = self.carry.advance(Instant::now(), &mut self.queue);
            while let Some((direction, frame)) = self.queue.pop(Instant::now()) {
                self.send(direction, &frame);
            }
            loop {
                match self.added.try_recv() {
                    Ok((direction, frame)) => self.send(direction, &frame),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Ok(()),
                }
            }
        }
    }

    /// A frame that the interface has no room for, or that it finds too long, is lost as on any wire.
    fn send(&self, direction: FrameDirection, frame: &[u8]) {
        let out = match direction {
            FrameDirection::There => &self.sockets[1],
            FrameDirection::Back => &self.sockets[0],
        };
        let _ = out.send(frame);
    }
}

/// Asks the kernel to wake the calling thread on time and before others. What it refuses is done without: the relay is then as
/// late as any program.
fn be_punctual() {
    // SAFETY: neither call takes a pointer; both affect the calling thread only (0 is the caller, which for Linux is a thread).
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK);
        libc::setpriority(libc::PRIO_PROCESS, 0, NICE);
    }
}
