//! Telling a supervisor how things stand (the protocol of `sd_notify(3)`), and `strait up` that the node is up.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::runtime::READY_VARIABLE;

/// What is said once the node is up.
pub(super) const READY: &str = "READY=1";

/// Who is told, the way there open: the process that tells may open none.
#[derive(Debug)]
pub(super) struct Supervisor {
    /// The supervisor of this process, if there is one.
    socket: Option<UnixDatagram>,
    /// Whether the program that started this one in the background waits.
    is_awaited: bool,
}

impl Supervisor {
    /// Whom the environment names.
    pub(super) fn open() -> Supervisor {
        let path = std::env::var_os("NOTIFY_SOCKET");
        let socket = path.and_then(|path| {
            let failed = |error| tracing::warn!(%error, "cannot reach the supervisor");
            connect(path.as_encoded_bytes()).map_err(failed).ok()
        });
        Supervisor { socket, is_awaited: std::env::var_os(READY_VARIABLE).is_some() }
    }

    /// Tells `state` to the supervisor of this process, if there is one, and [`READY`] to the program that started it in
    /// the background.
    pub(super) fn tell(&self, state: &str) {
        if state == READY
            && self.is_awaited
            && let Err(error) = tell_background()
        {
            tracing::debug!(%error, "`strait up` no longer waits");
        }
        if let Some(socket) = &self.socket
            && let Err(error) = socket.send(state.as_bytes())
        {
            tracing::warn!(%error, "cannot tell the supervisor {state}");
        }
    }
}

fn tell_background() -> std::io::Result<()> {
    File::from(std::io::stdin().as_fd().try_clone_to_owned()?).write_all(READY.as_bytes())
}

fn connect(path: &[u8]) -> std::io::Result<UnixDatagram> {
    use std::os::unix::ffi::OsStrExt;
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_abstract_sockets_are_notified() {
        let path = std::env::temp_dir().join(format!("strait-ready-test-{}", std::process::id()));
        let file = UnixDatagram::bind(&path).unwrap();
        let to = |path: &[u8], state: &str| {
            let supervisor = Supervisor { socket: Some(connect(path).unwrap()), is_awaited: false };
            supervisor.tell(state);
        };
        to(path.as_os_str().as_encoded_bytes(), "READY=1");
        let name = format!("strait-ready-test-{}", std::process::id());
        let hidden = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        to(format!("@{name}").as_bytes(), "STOPPING=1");
        let mut text = [0; 20];
        let len = file.recv(&mut text).unwrap();
        assert_eq!(&text[..len], b"READY=1");
        let len = hidden.recv(&mut text).unwrap();
        assert_eq!(&text[..len], b"STOPPING=1");
        std::fs::remove_file(&path).unwrap();
        assert!(connect(path.as_os_str().as_encoded_bytes()).is_err(), "the listener is closed");
    }
}
