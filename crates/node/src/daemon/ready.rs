//! Telling a supervisor how things stand (the protocol of `sd_notify(3)`).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends `state` to the supervisor of this process, if there is one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_abstract_sockets_are_notified() {
        let path = std::env::temp_dir().join(format!("strait-ready-test-{}", std::process::id()));
        let file = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str().as_encoded_bytes(), "READY=1").unwrap();
        let name = format!("strait-ready-test-{}", std::process::id());
        let hidden = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        send(format!("@{name}").as_bytes(), "STOPPING=1").unwrap();
        let mut text = [0; 20];
        let len = file.recv(&mut text).unwrap();
        assert_eq!(&text[..len], b"READY=1");
        let len = hidden.recv(&mut text).unwrap();
        assert_eq!(&text[..len], b"STOPPING=1");
        std::fs::remove_file(&path).unwrap();
        assert!(send(path.as_os_str().as_encoded_bytes(), "READY=1").is_err(), "the listener is closed");
    }
}
