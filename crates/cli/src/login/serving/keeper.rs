//! The first message of a stream, and what becomes of it. From here on this process is the account and has no privilege.

use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use strait_login::{Refusal, RefusedReason, Request, RequestReader, SessionRequest, Ticket, refusal};
use strait_node::config::LoginSection;
use strait_node::login::KeeperPort;
use strait_node::poll;
use strait_node::services::{StreamHead, say_last};
use zeroize::{Zeroize, Zeroizing};

use super::super::wire::{Wire, WireRead};
use super::visits::SessionOwner;
use super::{forward, program, session, visits};

/// How long a stream may take to say what it wants.
const SILENCE: Duration = Duration::from_secs(10);
/// How long a host may take to take a forwarded connection.
const CONNECTING: Duration = Duration::from_secs(10);

/// One stream, in a process of its own.
pub(super) struct Keeper {
    pub(super) head: StreamHead,
    pub(super) section: LoginSection,
}

/// A stream with what was read of it: the request, and bytes behind it.
pub(super) struct Opened {
    pub(super) wire: Wire,
    /// What followed the request.
    pub(super) rest: Vec<u8>,
}

impl Keeper {
    /// Serves the stream; how this process ends.
    pub(super) fn run(self, port: &KeeperPort, stream: UnixStream) -> i32 {
        let Ok(mut wire) = Wire::new(stream) else { return 1 };
        // With the secret of a ticket, if it is one who comes back.
        let mut raw = Zeroizing::new(Vec::new());
        let (request, rest) = match read_request(&mut wire, &mut raw) {
            Ok(Some(read)) => read,
            // It ended, or said nothing: no client waits for an answer.
            Ok(None) => return 1,
            Err(text) => return turn_away(wire, RefusedReason::BadRequest, &text),
        };
        let owner = self.owner(port);
        match request {
            Request::Start(ticket, request) => {
                raw.zeroize();
                self.start(port, Opened { wire, rest }, (ticket, request))
            }
            Request::Resume(resume) => visits::resume(wire, &owner, &resume.ticket, &raw),
            Request::List => visits::list(wire, &owner, &raw),
            Request::Agent(ticket) => {
                visits::agent(Opened { wire, rest }, &owner, &ticket, &raw, self.head.rate_bits)
            }
            Request::Connect { host, port: number } => {
                self.connect(port, Opened { wire, rest }, &host, number)
            }
        }
    }

    /// Whose sessions these are.
    pub(super) fn owner(&self, port: &KeeperPort) -> SessionOwner {
        SessionOwner {
            key: self.head.key.clone(),
            principal: port.principal().unwrap_or_default().to_owned(),
        }
    }

    fn start(self, port: &KeeperPort, opened: Opened, asked: (Ticket, SessionRequest)) -> i32 {
        match session::Session::begin(port, &self, asked) {
            Ok(session) => session.run(opened),
            Err(why) => turn_away(opened.wire, why.reason, &why.text),
        }
    }

    fn connect(&self, monitor: &KeeperPort, opened: Opened, host: &[u8], port: u16) -> i32 {
        if !self.section.forward {
            let text = "this peer may make no connections here (forward = false in its [[login]])";
            return turn_away(opened.wire, RefusedReason::NotAllowed, text);
        }
        if let Err(refused) = monitor.check_account() {
            let Refusal { reason, text } = program::from_monitor(refused);
            return turn_away(opened.wire, reason, &text);
        }
        match connected(host, port) {
            Ok(connection) => forward::run(opened, &connection, self.head.rate_bits),
            Err(text) => turn_away(opened.wire, RefusedReason::System, &text),
        }
    }
}

/// The first message, which has to come soon; nothing if none did.
fn read_request(wire: &mut Wire, raw: &mut Vec<u8>) -> Result<Option<(Request, Vec<u8>)>, String> {
    let (mut reader, mut buffer, begun) =
        (RequestReader::new(), Zeroizing::new(Wire::buffer()), Instant::now());
    loop {
        match wire.read(&mut buffer) {
            WireRead::Bytes(length) => {
                let bytes = buffer.get(..length).unwrap_or_default();
                raw.extend_from_slice(bytes);
                if let Some(read) = reader.read(bytes).map_err(|error| error.to_string())? {
                    return Ok(Some(read));
                }
            }
            WireRead::End => return Ok(None),
            WireRead::Nothing => {
                let Some(left) = SILENCE.checked_sub(begun.elapsed()) else { return Ok(None) };
                if poll::wait(&mut [wire.interest()], Some(left)).is_err() {
                    return Ok(None);
                }
            }
        }
    }
}

fn connected(host: &[u8], port: u16) -> Result<TcpStream, String> {
    let host = std::str::from_utf8(host).map_err(|_| "the host's name is not text".to_owned())?;
    let addresses = (host, port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    let mut last = format!("{host} has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECTING) {
            Ok(connection) => {
                // What is written together leaves together; small writes do not wait.
                let ready = connection.set_nodelay(true).and_then(|()| connection.set_nonblocking(true));
                return ready.map(|()| connection).map_err(|error| error.to_string());
            }
            Err(error) => last = format!("{address}: {error}"),
        }
    }
    Err(last)
}

/// Tells the client why it is not served, and waits a while until it has heard it: what it writes to a closed stream would undo that.
pub(super) fn turn_away(wire: Wire, reason: RefusedReason, text: &str) -> i32 {
    say(wire, &refusal(&Refusal { reason, text: text.to_owned() }))
}

/// Says the only message of a stream, and waits a while until it has arrived.
pub(super) fn say(wire: Wire, message: &[u8]) -> i32 {
    let stream = wire.into_stream();
    if stream.set_nonblocking(false).is_ok() {
        say_last(&stream, message);
    }
    1
}
