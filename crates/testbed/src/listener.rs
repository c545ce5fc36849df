//! A socket on which a thread listens until it is told to stop.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How soon the thread notices that it should end.
const TICK: Duration = Duration::from_millis(50);

/// Gives each datagram that arrives, cut to `room` bytes, to `heard` with its sender.
///
/// # Errors
/// What the socket or `heard` fails with.
pub fn listen(
    socket: &UdpSocket,
    room: usize,
    stop: &AtomicBool,
    mut heard: impl FnMut(&[u8], SocketAddr) -> io::Result<()>,
) -> io::Result<()> {
    socket.set_read_timeout(Some(TICK))?;
    let mut buffer = vec![0; room];
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut buffer) {
            Ok((count, from)) => heard(buffer.get(..count).unwrap_or_default(), from)?,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
