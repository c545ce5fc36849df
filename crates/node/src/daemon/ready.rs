//! Telling a supervisor how things stand (the protocol of `sd_notify(3)`).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends `state` to whoever supervises this process, if anybody does.
pub(super) fn announce(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(path.as_encoded_bytes(), state) {
        tracing::warn!(%error, "cannot tell the supervisor {state}");
    }
}

fn send(path: &[u8], state: &str) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(|_| ())
}
