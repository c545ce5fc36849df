//! What a host receives, kept.

use std::time::{Duration, Instant};

use strait_wire::demux::{DatagramKind, classify};

use super::route::HEADERS;
use crate::frame::FrameSocket;
use crate::{Error, LinkEnd};

/// The longest frame that is kept.
const FRAME_MAX: usize = 14 + 65_535;

/// Keeps watching what an interface receives.
#[derive(Debug)]
pub struct WireTap {
    socket: FrameSocket,
    buffer: Vec<u8>,
}

impl WireTap {
    /// Watches `end` from now on.
    ///
    /// # Errors
    /// [`Error::System`] when the interface cannot be listened at.
    pub fn open(end: &LinkEnd) -> Result<WireTap, Error> {
        let socket = end.host.run("listen to a wire", || FrameSocket::open(&end.interface))?;
        Ok(WireTap { socket, buffer: vec![0; FRAME_MAX] })
    }

    /// The next frame, if one has come; never waits.
    ///
    /// # Errors
    /// [`Error::System`] when the kernel refuses.
    pub fn frame(&mut self) -> Result<Option<&[u8]>, Error> {
        let len = self.socket.receive(&mut self.buffer).map_err(Error::doing("listen to a wire"))?;
        Ok(len.and_then(|len| self.buffer.get(..len)))
    }
}

/// The frames that `end` receives within `span`, at most `count` of them.
///
/// # Errors
/// [`Error::System`] when the interface cannot be listened at.
pub fn listen(end: &LinkEnd, span: Duration, count: usize) -> Result<Vec<Vec<u8>>, Error> {
    let mut tap = WireTap::open(end)?;
    let (start, mut frames) = (Instant::now(), Vec::new());
    while start.elapsed() < span && frames.len() < count {
        match tap.frame()? {
            Some(frame) => frames.push(frame.to_vec()),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    Ok(frames)
}

/// The ESP packet in a frame with a UDP datagram over IPv4, if it is one.
#[must_use]
pub fn esp_of(frame: &[u8]) -> Option<&[u8]> {
    datagram_of(frame, DatagramKind::Esp)
}

/// The datagram of keys without sessions in a frame with a UDP datagram over IPv4, if it is one.
#[must_use]
pub fn sessionless_of(frame: &[u8]) -> Option<&[u8]> {
    datagram_of(frame, DatagramKind::Sessionless)
}

fn datagram_of(frame: &[u8], kind: DatagramKind) -> Option<&[u8]> {
    let is_udp = frame.get(12..14) == Some(&[8, 0]) && frame.get(23) == Some(&17);
    let payload = frame.get(HEADERS..).filter(|_| is_udp)?;
    (classify(payload) == kind).then_some(payload)
}
