//! Frames with any source address, at a steady rate.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use strait_wire::checksum::Sum;

use crate::frame::{BATCH, FrameSocket};
use crate::interface::{add_route, hardware_address};
use crate::{Error, LinkEnd, Namespace, WireLink};

/// Ethernet's header.
const ETHERNET: usize = 14;
/// Ethernet, IPv4 and UDP headers: where a datagram's payload begins in a frame.
pub(super) const HEADERS: usize = ETHERNET + 20 + 8;
/// How long the sender sleeps when nothing is due.
const BEAT: Duration = Duration::from_micros(200);
/// What an attacker who cannot keep up gives up, instead of sending it all at once later.
const BACKLOG: Duration = Duration::from_millis(20);

/// The way from an attacker to one UDP port of a host.
#[derive(Clone, Debug)]
pub struct AttackRoute {
    host: Namespace,
    interface: String,
    /// Ethernet's header.
    ethernet: [u8; ETHERNET],
    own: Ipv4Addr,
    to: SocketAddrV4,
}

impl AttackRoute {
    /// From the first end of `link` to `port` of the second.
    ///
    /// # Errors
    /// [`Error::System`] when an interface cannot be asked for its address.
    pub fn over(link: &WireLink, port: u16) -> Result<AttackRoute, Error> {
        let hardware = |end: &LinkEnd| {
            let ask = || hardware_address(&end.interface);
            end.host.run("ask for a hardware address", ask)
        };
        let (to, from) = (hardware(&link.b)?, hardware(&link.a)?);
        let mut ethernet = [0; ETHERNET];
        ethernet[..6].copy_from_slice(&to);
        ethernet[6..12].copy_from_slice(&from);
        ethernet[12..].copy_from_slice(&[8, 0]);
        let LinkEnd { host, interface, v4, .. } = link.a.clone();
        Ok(AttackRoute { host, interface, ethernet, own: v4, to: SocketAddrV4::new(link.b.v4, port) })
    }

    /// Has the second end of `link` take packets with any source address from it, and send to it what it has no other
    /// route for: as a host on the Internet does.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn open_to_the_world(link: &WireLink) -> Result<(), Error> {
        let interface = &link.b.interface;
        link.b.host.run("be open to the world", || {
            ["all", interface.as_str()]
                .iter()
                .try_for_each(|name| fs::write(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"), "0"))?;
            add_route(Ipv4Addr::UNSPECIFIED.into(), 0, IpAddr::V4(link.a.v4))
        })
    }

    /// The attacker's own address, with a port.
    #[must_use]
    pub const fn own(&self, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.own, port)
    }

    /// The frame with a UDP datagram from `source`, without a UDP checksum (RFC 768).
    #[must_use]
    pub fn frame(&self, source: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
        let length =
            |headers: usize| u16::try_from(headers + payload.len()).unwrap_or(u16::MAX).to_be_bytes();
        let ([a, b], [c, d]) = (length(28), length(8));
        let mut ip = [0x45, 0, a, b, 0, 0, 0x40, 0, 64, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        ip[12..16].copy_from_slice(&source.ip().octets());
        ip[16..].copy_from_slice(&self.to.ip().octets());
        let sum = Sum::ZERO.add_bytes(&ip).finish().to_be_bytes();
        ip[10..12].copy_from_slice(&sum);
        let ([e, f], [g, h]) = (source.port().to_be_bytes(), self.to.port().to_be_bytes());
        [&self.ethernet[..], &ip, &[e, f, g, h, c, d, 0, 0], payload].concat()
    }

    /// Sends `rate` frames a second until it is stopped; `next` writes the frame of a number, from 0.
    ///
    /// # Errors
    /// [`Error::System`] when no thread can be started.
    pub fn start(
        &self,
        rate: f64,
        next: impl FnMut(u64, &mut Vec<u8>) + Send + 'static,
    ) -> Result<RunningAttack, Error> {
        let state = Arc::new(AttackState::default());
        let (interface, shared) = (self.interface.clone(), Arc::clone(&state));
        let thread = self.host.spawn(move || {
            let socket = FrameSocket::for_sending(&interface)?;
            send(&socket, rate, next, &shared)
        })?;
        Ok(RunningAttack { state, thread: Some(thread), start: Instant::now() })
    }

    /// The same with prepared frames, one after another and then from the first again.
    ///
    /// # Errors
    /// [`Error::System`] when no thread can be started.
    pub fn start_cycle(&self, rate: f64, frames: Arc<[Vec<u8>]>) -> Result<RunningAttack, Error> {
        self.start(rate, move |number, frame| {
            let at = usize::try_from(number).unwrap_or(0) % frames.len().max(1);
            frame.clear();
            frame.extend_from_slice(frames.get(at).map_or(&[], Vec::as_slice));
        })
    }
}

/// What an attack's threads share.
#[derive(Debug, Default)]
struct AttackState {
    frames: AtomicU64,
    bytes: AtomicU64,
    stop: AtomicBool,
}

/// An attack that goes on until this value is stopped or dropped.
#[derive(Debug)]
pub struct RunningAttack {
    state: Arc<AttackState>,
    thread: Option<JoinHandle<io::Result<()>>>,
    start: Instant,
}

/// What an attack has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SentFrames {
    /// How many frames.
    pub frames: u64,
    /// Bytes of them, with Ethernet headers.
    pub bytes: u64,
    /// Time from its start to its end.
    pub took: Duration,
}

impl SentFrames {
    /// Frames a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.frames as f64 / self.took.as_secs_f64()
    }
}

impl RunningAttack {
    /// Ends it and says what was sent.
    ///
    /// # Errors
    /// [`Error::System`] when the frames could not be sent.
    pub fn stop(mut self) -> Result<SentFrames, Error> {
        self.state.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            Namespace::join(thread, "attack")?;
        }
        Ok(SentFrames {
            frames: self.state.frames.load(Ordering::Relaxed),
            bytes: self.state.bytes.load(Ordering::Relaxed),
            took: self.start.elapsed(),
        })
    }
}

impl Drop for RunningAttack {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn send(
    socket: &FrameSocket,
    rate: f64,
    mut next: impl FnMut(u64, &mut Vec<u8>),
    state: &AttackState,
) -> io::Result<()> {
    let mut frames = vec![Vec::new(); BATCH];
    let (mut last, mut due, mut number) = (Instant::now(), 0.0, 0);
    while !state.stop.load(Ordering::Relaxed) {
        due = (due + last.elapsed().as_secs_f64() * rate).min((BACKLOG.as_secs_f64() * rate).max(1.0));
        last = Instant::now();
        // What is due is small and not negative.
        let count = (due as usize).min(BATCH);
        if count == 0 {
            std::thread::sleep(BEAT);
            continue;
        }
        let batch = frames.get_mut(..count).unwrap_or_default();
        for frame in &mut *batch {
            next(number, frame);
            number += 1;
        }
        let sent = socket.send_many(batch)?;
        let bytes: usize = batch.iter().take(sent).map(Vec::len).sum();
        due -= count as f64;
        state.frames.fetch_add(sent as u64, Ordering::Relaxed);
        state.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    Ok(())
}
