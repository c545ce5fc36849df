//! Telling a supervisor how things stand (the protocol of `sd_notify(3)`), and `strait up` that the node is up.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::runtime::READY_VARIABLE;

/// What is said once the node is up.
pub(super) const READY: &str = "READY=1";

/// Sends `state` to the supervisor of this process, if there is one, and [`READY`] to the program that started it in
/// the background.
pub(super) fn announce(state: &str) {
    if state == READY
        && std::env::var_os(READY_VARIABLE).is_some()
        && let Err(error) = tell_starter()
    {
        tracing::debug!(%error, "`strait up` no longer waits");
    }
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(path.as_encoded_bytes(), state) {
        tracing::warn!(%error, "cannot tell the supervisor {state}");
    }
}

fn tell_starter() -> std::io::Result<()> {
    File::from(std::io::stdin().as_fd().try_clone_to_owned()?).write_all(READY.as_bytes())
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
