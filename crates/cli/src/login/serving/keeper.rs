//! The first message of a stream, and what becomes of it. From here on this process is the account and has no privilege.

use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use strait_login::{Refusal, RefusedReason, Request, RequestReader, SessionRequest, Ticket, refusal};
use strait_node::config::LoginSection;
use strait_node::login::{Account, KeeperPort, RefusalLog};
use strait_node::poll;
use strait_node::services::{printable, say_last};
use zeroize::{Zeroize, Zeroizing};

use super::super::wire::{Wire, WireRead};
use super::visits::SessionOwner;
use super::{forward, program, session, visits};

/// How long a stream may take to say what it wants.
const SILENCE: Duration = Duration::from_secs(10);
/// How long a host may take to take a forwarded connection.
const CONNECTING: Duration = Duration::from_secs(10);

/// One stream, in a process of its own.
#[derive(Serialize, Deserialize)]
pub(super) struct Keeper {
    pub(super) logs: RefusalLog,
    pub(super) section: LoginSection,
}

/// The target of a connection, as the client writes it.
struct Target<'a> {
    host: &'a str,
    port: u16,
}

/// As `forward` has it.
impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
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
            // It ended: no client waits for an answer.
            Ok(None) => return 1,
            Err(Unread::Silent) => {
                self.logs.say("login", &format!("it has not said within {SILENCE:?} what it wants"));
                return 1;
            }
            Err(Unread::Broken(text)) => {
                self.logs.say("login", &text);
                return turn_away(wire, RefusedReason::BadRequest, &text);
            }
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
                visits::agent(Opened { wire, rest }, &owner, &ticket, &raw, self.rate_bits())
            }
            Request::Connect { host, port: number } => {
                let host = String::from_utf8_lossy(&host);
                self.connect(port, Opened { wire, rest }, &Target { host: &host, port: number })
            }
        }
    }

    /// Whose sessions these are.
    pub(super) fn owner(&self, port: &KeeperPort) -> SessionOwner {
        SessionOwner {
            key: self.logs.head.key.clone(),
            principal: port.principal().unwrap_or_default().to_owned(),
        }
    }

    /// The rate of the link to the peer, if it is known.
    pub(super) fn rate_bits(&self) -> Option<u64> {
        self.logs.head.rate_bits
    }

    fn start(self, port: &KeeperPort, opened: Opened, asked: (Ticket, SessionRequest)) -> i32 {
        match session::Session::begin(port, &self, asked) {
            Ok(session) => session.run(opened),
            Err(why) => turn_away(opened.wire, why.reason, &why.text),
        }
    }

    fn connect(&self, monitor: &KeeperPort, opened: Opened, target: &Target<'_>) -> i32 {
        let account = monitor.account();
        let principal = monitor.principal().map(|it| format!(" ({it})")).unwrap_or_default();
        let what = printable(&format!("to {target} as {}{principal}", account.name));
        let made = self.allowed(account, target).and_then(|addresses| {
            monitor.check_account().map_err(program::from_monitor)?;
            connected(&addresses).map_err(failed)
        });
        match made {
            Ok((connection, address)) => {
                let head = &self.logs.head;
                tracing::info!("{}: a connection from {} {what} ({address})", head.peer, head.from);
                forward::run(opened, &connection, self.rate_bits())
            }
            Err(Refusal { reason: RefusedReason::System, text }) => {
                tracing::info!("{}: no connection {what}: {}", self.logs.head.peer, printable(&text));
                turn_away(opened.wire, RefusedReason::System, &text)
            }
            Err(Refusal { reason, text }) => {
                self.logs.say("connection", &format!("{what}: {text}"));
                turn_away(opened.wire, reason, &text)
            }
        }
    }

    /// The addresses of a target that `forward` lists. They are looked up once, and connected to as they were found.
    fn allowed(&self, account: &Account, target: &Target<'_>) -> Result<Vec<SocketAddr>, Refusal> {
        let Target { host, port } = *target;
        let listed = &self.section.forward;
        if !listed.iter().any(|it| it.may_mean(host, port)) {
            return Err(not_listed(target, &target.to_string()));
        }
        if !account.has_listed_shell() {
            let shell = account.shell.display();
            let text =
                format!("connections are made as accounts whose shell is in /etc/shells; {shell} is not");
            return Err(Refusal { reason: RefusedReason::NotAllowed, text });
        }
        let found = (host, port).to_socket_addrs().map_err(|error| failed(format!("{target}: {error}")))?;
        let (allowed, others): (Vec<_>, Vec<_>) =
            found.partition(|address| listed.iter().any(|it| it.takes(host, *address)));
        match others.first() {
            Some(address) if allowed.is_empty() => Err(not_listed(target, &address.to_string())),
            None if allowed.is_empty() => Err(failed(format!("{host} has no address"))),
            _ => Ok(allowed),
        }
    }
}

fn failed(text: String) -> Refusal {
    Refusal { reason: RefusedReason::System, text }
}

/// Says what would have to be listed.
fn not_listed(target: &Target<'_>, entry: &str) -> Refusal {
    let text = format!(
        "this peer may not connect to {target} here; forward = [\"{entry}\"] in its [[login]] would let it"
    );
    Refusal { reason: RefusedReason::NotAllowed, text: printable(&text) }
}

/// A reason for having no first message.
enum Unread {
    /// It did not come in time.
    Silent,
    /// It is none.
    Broken(String),
}

/// The first message, which has to come soon; nothing if none did.
fn read_request(wire: &mut Wire, raw: &mut Vec<u8>) -> Result<Option<(Request, Vec<u8>)>, Unread> {
    let (mut reader, mut buffer, begun) =
        (RequestReader::new(), Zeroizing::new(Wire::buffer()), Instant::now());
    loop {
        match wire.read(&mut buffer) {
            WireRead::Bytes(length) => {
                let bytes = buffer.get(..length).unwrap_or_default();
                raw.extend_from_slice(bytes);
                let read = reader.read(bytes).map_err(|error| Unread::Broken(error.to_string()));
                if let Some(read) = read? {
                    return Ok(Some(read));
                }
            }
            WireRead::End => return Ok(None),
            WireRead::Nothing => {
                let left = SILENCE.checked_sub(begun.elapsed()).ok_or(Unread::Silent)?;
                if poll::wait(&mut [wire.interest()], Some(left)).is_err() {
                    return Ok(None);
                }
            }
        }
    }
}

/// A connection to the first of the addresses that takes one.
fn connected(addresses: &[SocketAddr]) -> Result<(TcpStream, SocketAddr), String> {
    let mut last = String::new();
    for address in addresses {
        match TcpStream::connect_timeout(address, CONNECTING) {
            Ok(connection) => {
                // What is written together leaves together; small writes do not wait.
                let ready = connection.set_nodelay(true).and_then(|()| connection.set_nonblocking(true));
                return ready.map(|()| (connection, *address)).map_err(|error| error.to_string());
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
