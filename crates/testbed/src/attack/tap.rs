//! What a host receives, kept.

use std::time::{Duration, Instant};

use strait_wire::demux::{DatagramKind, classify};

use super::route::HEADERS;
use crate::frame::FrameSocket;
use crate::{Error, LinkEnd};

/// The longest frame that is kept.
const FRAME_MAX: usize = 14 + 65_535;

/// The frames that `end` receives within `span`, at most `count` of them.
///
/// # Errors
/// [`Error::System`] when the interface cannot be listened at.
pub fn listen(end: &LinkEnd, span: Duration, count: usize) -> Result<Vec<Vec<u8>>, Error> {
    end.host.run("listen to a wire", || {
        let socket = FrameSocket::open(&end.interface)?;
        let (start, mut frames, mut buffer) = (Instant::now(), Vec::new(), vec![0; FRAME_MAX]);
        while start.elapsed() < span && frames.len() < count {
            match socket.receive(&mut buffer)? {
                Some(len) => frames.push(buffer.get(..len).unwrap_or_default().to_vec()),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        Ok(frames)
    })
}

/// The ESP packet in a frame with a UDP datagram over IPv4, if it is one.
#[must_use]
pub fn esp_of(frame: &[u8]) -> Option<&[u8]> {
    let is_udp = frame.get(12..14) == Some(&[8, 0]) && frame.get(23) == Some(&17);
    let payload = frame.get(HEADERS..).filter(|_| is_udp)?;
    (classify(payload) == DatagramKind::Esp).then_some(payload)
}
