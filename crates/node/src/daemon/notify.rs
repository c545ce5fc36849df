//! Telling whoever started the daemon that it is ready (the protocol of sd_notify(3)), or why it is not.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Names the socket of a supervisor.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Tells the supervisor `state`, such as `READY=1`, if there is one.
pub(super) fn tell(state: &str) {
    let Some(socket) = std::env::var_os(VARIABLE).filter(|socket| !socket.is_empty()) else { return };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, "the supervisor could not be told `{state}`");
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_socket_are_told() {
        let path = std::env::temp_dir().join(format!("strait-notify-{}", std::process::id()));
        let file = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        let name = format!("strait-notify-{}", std::process::id());
        let hidden = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        send(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        let mut text = [0; 20];
        let len = file.recv(&mut text).unwrap();
        assert_eq!(&text[..len], b"READY=1");
        let len = hidden.recv(&mut text).unwrap();
        assert_eq!(&text[..len], b"STOPPING=1");
        std::fs::remove_file(path).unwrap();
    }
}
