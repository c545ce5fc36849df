//! A bad wire: frames between two hosts pass through a program that may lose, repeat, delay or keep them, and add
//! its own.
//!
//! The kernel's own emulator is not on every system; this one needs packet sockets only.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::frame::{FrameSocket, wait};
use crate::{Error, InterfaceState, LinkSpec, Namespace, TwoHosts, WireLink};

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameDirection {
    /// From the first host to the second.
    There,
    /// From the second host to the first.
    Back,
}

/// What is done with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFate {
    /// It goes on.
    Pass,
    /// It is lost.
    Lose,
    /// It goes on twice.
    Repeat,
    /// It goes on later, so that others may overtake it.
    Delay(Duration),
}

/// The longest frame that is relayed: an Ethernet header and 65,535 bytes.
const FRAME_MAX: usize = 14 + 65_535;

/// How soon the relay notices frames to add and the wish to end.
const TICK: Duration = Duration::from_millis(5);

/// Frames are delayed at most in this number; more are lost, as in any queue.
const DELAYED_MAX: usize = 10_000;

/// The program between two hosts; it ends when dropped, and the link is dead then.
#[derive(Debug)]
pub struct Relay {
    add: Option<Sender<(FrameDirection, Vec<u8>)>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Its link to the second host.
    pub far: WireLink,
}

impl Relay {
    /// Two hosts whose frames pass `judge`, which sees each with its Ethernet header, after the queue of a link like
    /// `spec`.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn between(
        spec: LinkSpec,
        judge: impl FnMut(FrameDirection, &[u8]) -> FrameFate + Send + 'static,
    ) -> Result<(TwoHosts, Relay), Error> {
        let (a, b) = (Namespace::create("site-a")?, Namespace::create("site-b")?);
        let middle = Namespace::create("relay")?;
        let unlimited = LinkSpec { rate: None, back: None, ..spec };
        let near = WireLink::join(&a, &middle, 0, unlimited)?;
        let far = WireLink::join(&middle, &b, 0, unlimited)?;
        let names = [near.b.interface.clone(), far.a.interface.clone()];
        // The relay's own ends carry frames only: as hosts they would answer for addresses.
        for end in [&near.b, &far.a] {
            end.remove_address(end.v4.into(), 24)?;
            end.host.run("make a bare interface", || bare(&end.interface))?;
        }
        let (add, added) = mpsc::channel();
        let thread = middle.spawn(move || {
            let sockets = [FrameSocket::open(&names[0])?, FrameSocket::open(&names[1])?];
            Forwarder { sockets, judge, added, delayed: BinaryHeap::new(), count: 0 }.run()
        })?;
        let mut link = WireLink::of_ends(near.a.clone(), far.b.clone(), unlimited);
        link.set_rate(spec.rate)?;
        Ok((TwoHosts { a, b, link, router: None }, Relay { add: Some(add), thread: Some(thread), far }))
    }

    /// Puts a frame on the wire, such as one that passed before.
    pub fn inject(&self, direction: FrameDirection, frame: &[u8]) {
        if let Some(add) = &self.add {
            let _ = add.send((direction, frame.to_vec()));
        }
    }

    /// Pulls out or plugs in the second host.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn set_far_state(&self, state: InterfaceState) -> Result<(), Error> {
        self.far.a.set_state(state)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.add = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Without IPv6 an interface says nothing by itself.
fn bare(interface: &str) -> io::Result<()> {
    match std::fs::write(format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6"), "1") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// A frame that waits: when it is due, in which order it came, where it goes, what it is.
type Delayed = Reverse<(Instant, u64, FrameDirection, Vec<u8>)>;

struct Forwarder<J> {
    sockets: [FrameSocket; 2],
    judge: J,
    added: Receiver<(FrameDirection, Vec<u8>)>,
    delayed: BinaryHeap<Delayed>,
    count: u64,
}

impl<J: FnMut(FrameDirection, &[u8]) -> FrameFate> Forwarder<J> {
    fn run(mut self) -> io::Result<()> {
        let mut buffer = vec![0_u8; FRAME_MAX];
        loop {
            wait(&self.sockets, self.pause())?;
            for (index, direction) in [(0, FrameDirection::There), (1, FrameDirection::Back)] {
                while let Some(length) = self.sockets[index].receive(&mut buffer)? {
                    self.relay(direction, &buffer[..length]);
                }
            }
            while self.delayed.peek().is_some_and(|Reverse((due, ..))| *due <= Instant::now()) {
                if let Some(Reverse((_, _, direction, frame))) = self.delayed.pop() {
                    self.send(direction, &frame);
                }
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

    fn pause(&self) -> Duration {
        let due = self.delayed.peek().map(|Reverse((due, ..))| due.saturating_duration_since(Instant::now()));
        due.map_or(TICK, |due| due.min(TICK))
    }

    fn relay(&mut self, direction: FrameDirection, frame: &[u8]) {
        match (self.judge)(direction, frame) {
            FrameFate::Pass => self.send(direction, frame),
            FrameFate::Lose => {}
            FrameFate::Repeat => {
                self.send(direction, frame);
                self.send(direction, frame);
            }
            FrameFate::Delay(time) if self.delayed.len() < DELAYED_MAX => {
                self.count += 1;
                self.delayed.push(Reverse((Instant::now() + time, self.count, direction, frame.to_vec())));
            }
            FrameFate::Delay(_) => {}
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
