//! A bad wire: frames between two hosts pass through a program that may lose, repeat, delay or keep them, and add
//! its own; or that is a path with a rate, a queue, a delay and loss, as [`strait_sim::SimLink`] models it, or a telephone line with
//! modems that compress, as [`strait_sim::DialUp`] does.
//!
//! The kernel's own emulator is not on every system; this one needs packet sockets only.

mod carrier;
mod dialled;
mod forwarder;
mod path;

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::frame::FrameSocket;
use crate::{Error, InterfaceState, LinkSpec, Namespace, Offloads, TwoHosts, WireLink};

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

use carrier::FrameCarrier;
pub use dialled::{DialledLine, SeenPacket};
use forwarder::{Forwarder, FrameQueue};
pub use path::EmulatedPath;

/// Largest packet of an emulated path, in bytes without the Ethernet header.
const PATH_MTU: u32 = 1500;

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
        mut judge: impl FnMut(FrameDirection, &[u8]) -> FrameFate + Send + 'static,
    ) -> Result<(TwoHosts, Relay), Error> {
        let carry = move |(direction, _): (FrameDirection, Instant), frame: &[u8], queue: &mut FrameQueue| {
            judged(judge(direction, frame), direction, frame, queue);
        };
        Relay::join(spec, carry)
    }

    /// Two hosts whose IP packets take `path`: a packet leaves when the model says that it arrives, once, twice or never.
    ///
    /// TCP of the hosts is that of [`TwoHosts::with_cubic`].
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn over(path: &EmulatedPath) -> Result<(TwoHosts, Relay), Error> {
        let spec = LinkSpec {
            rate: None,
            back: None,
            queue: Duration::ZERO,
            mtu: PATH_MTU,
            offloads: Offloads::Off,
        };
        let (hosts, relay) = Relay::join(spec, path.carrier())?;
        Ok((hosts.with_cubic()?, relay))
    }

    /// Two hosts whose IPv4 packets, of at most `mtu` bytes, go over a telephone line.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn dialled(line: &DialledLine, mtu: u32) -> Result<(TwoHosts, Relay), Error> {
        let (hosts, relay) =
            Relay::join(LinkSpec { offloads: Offloads::Off, ..LinkSpec::unshaped() }, line.clone())?;
        // Afterwards: with less than 1,280 bytes an interface takes no address of IPv6.
        hosts.link.a.set_mtu(mtu)?;
        hosts.link.b.set_mtu(mtu)?;
        Ok((hosts, relay))
    }

    fn join(spec: LinkSpec, carry: impl FrameCarrier + Send + 'static) -> Result<(TwoHosts, Relay), Error> {
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
            Forwarder::new(sockets, added, carry).run()
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

fn judged(fate: FrameFate, direction: FrameDirection, frame: &[u8], queue: &mut FrameQueue) {
    let now = Instant::now();
    match fate {
        FrameFate::Pass => queue.push(now, direction, frame),
        FrameFate::Lose => {}
        FrameFate::Repeat => {
            queue.push(now, direction, frame);
            queue.push(now, direction, frame);
        }
        FrameFate::Delay(time) => queue.push(now + time, direction, frame),
    }
}
