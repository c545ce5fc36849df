//! Later streams of a session. A process of the account has read what such a stream wants, and finds the session's keeper at its
//! socket: to it go the request, as it came, and the stream. The keeper compares whose it is and the ticket.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use strait_login::{
    ListedSession, Refusal, RefusedReason, Request, RequestReader, SessionNumber, Ticket, refusal, sessions,
};
use strait_node::login::{KeeperPort, SessionChannel};
use strait_node::poll::{self, PollFd};
use zeroize::Zeroizing;

use super::super::wire::Wire;
use super::forward;
use super::keeper::{Opened, say, turn_away};
use super::session::Session;

/// How long a keeper may take to answer: it waits for nothing but the processor.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a visitor may take to say what it wants: it has it.
const VISITOR: Duration = Duration::from_secs(1);
/// Streams that wait for connections to an agent at most, and connections that wait for streams.
const AGENTS_MAX: usize = 16;
/// Bytes of a public key in base64.
const KEY_LEN: usize = 44;
/// What stands before a principal.
const PRINCIPAL: u8 = 0;
/// Sessions in a list at most.
const LISTED_MAX: usize = 256;

/// What a keeper answers: the stream is taken.
const TAKEN: &[u8] = b"taken";
/// The stream waits for a connection, which follows.
const WAITS: &[u8] = b"waits";
/// The session is another peer's, and is not told of.
const FOREIGN: &[u8] = b"foreign";
/// A refusal, whose text follows.
const REFUSED: &[u8] = b"refused ";

/// Whose a session is: a node's, and where it had to show a ticket, of one person there.
#[derive(Clone, Debug)]
pub(super) struct SessionOwner {
    /// The node's public key, in base64.
    pub(super) key: String,
    /// The principal; empty without a ticket.
    pub(super) principal: String,
}

impl SessionOwner {
    /// What a message to a keeper begins with: the key, and a principal behind a byte that no request begins with, and its length.
    fn bytes(&self) -> io::Result<Vec<u8>> {
        if self.key.len() != KEY_LEN {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut bytes = self.key.as_bytes().to_vec();
        if !self.principal.is_empty() {
            let length = u16::try_from(self.principal.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
            bytes.push(PRINCIPAL);
            bytes.extend(length.to_be_bytes());
            bytes.extend(self.principal.as_bytes());
        }
        Ok(bytes)
    }

    /// The request that follows this owner; nothing if another stands there.
    fn strip<'m>(&self, message: &'m [u8]) -> Option<&'m [u8]> {
        message.strip_prefix(&*self.bytes().ok()?).filter(|rest| rest.first() != Some(&PRINCIPAL))
    }
}

/// The name of a session's socket.
pub(super) fn socket_name(number: SessionNumber) -> String {
    number.to_string()
}

/// Brings a stream back to its session; how this process ends.
pub(super) fn resume(wire: Wire, owner: &SessionOwner, ticket: &Ticket, raw: &[u8]) -> i32 {
    match visit(&socket_name(ticket.session()), owner, raw, Some(&wire)) {
        Ok((answer, _)) if answer == TAKEN => 0,
        Ok((answer, _)) => turn_away_as_told(wire, &answer),
        Err(_) => no_such_session(wire),
    }
}

/// Waits for a connection to the agent's socket of a session, and carries it; how this process ends.
pub(super) fn agent(
    opened: Opened,
    owner: &SessionOwner,
    ticket: &Ticket,
    raw: &[u8],
    rate_bits: Option<u64>,
) -> i32 {
    let Opened { wire, rest } = opened;
    let channel = match visit(&socket_name(ticket.session()), owner, raw, None) {
        Ok((answer, channel)) if answer == WAITS => channel,
        Ok((answer, _)) => return turn_away_as_told(wire, &answer),
        Err(_) => return no_such_session(wire),
    };
    loop {
        match channel.receive_now() {
            Ok((_, mut descriptors)) => {
                let Some(connection) = descriptors.pop().map(UnixStream::from) else { return 1 };
                if connection.set_nonblocking(true).is_err() {
                    return 1;
                }
                return forward::run(Opened { wire, rest }, &connection, rate_bits);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return no_such_session(wire),
        }
        let mut ends = [PollFd::readable(channel.as_fd()), PollFd::readable(wire.as_fd())];
        if poll::wait(&mut ends, None).is_err() {
            return 1;
        }
        // A client says nothing before there is a connection: it is gone.
        if ends[1].is_ready() && !ends[0].is_ready() {
            return 1;
        }
    }
}

/// Lists the peer's sessions of this account; how this process ends.
pub(super) fn list(wire: Wire, owner: &SessionOwner, raw: &[u8]) -> i32 {
    let names = std::fs::read_dir(".").into_iter().flatten();
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found = Vec::new();
    for name in names {
        let Some(number) = number_of(&name) else { continue };
        if let Ok((answer, _)) = visit(&name, owner, raw, None)
            && let Some(listed) = parse(number, &answer)
        {
            found.push(listed);
        }
    }
    found.sort_by_key(|listed| listed.since);
    found.truncate(LISTED_MAX);
    say(wire, &sessions(&found))
}

fn number_of(name: &str) -> Option<SessionNumber> {
    let is_number = name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u64::from_str_radix(name, 16).ok().map(SessionNumber))?
}

/// What [`Session::description`] says.
fn parse(number: SessionNumber, answer: &[u8]) -> Option<ListedSession> {
    let text = std::str::from_utf8(answer).ok()?;
    let mut parts = text.splitn(4, ' ');
    let mut number_part = || parts.next()?.parse::<u64>().ok();
    let (since, idle, attached) = (number_part()?, number_part()?, number_part()? == 1);
    Some(ListedSession { number, since, idle, what: parts.next()?.to_owned(), attached })
}

/// Tells a keeper what a stream wants, and gives it the stream: what it answers.
fn visit(
    name: &str,
    owner: &SessionOwner,
    raw: &[u8],
    wire: Option<&Wire>,
) -> io::Result<(Vec<u8>, SessionChannel)> {
    let channel = SessionChannel::connect(name)?;
    channel.set_patience(PATIENCE)?;
    let message = Zeroizing::new([&owner.bytes()?, raw].concat());
    let stream: Vec<_> = wire.into_iter().map(AsFd::as_fd).collect();
    channel.send(&message, &stream)?;
    let (answer, _) = channel.receive()?;
    Ok((answer, channel))
}

fn no_such_session(wire: Wire) -> i32 {
    turn_away(wire, RefusedReason::NoSuchSession, "there is no such session any more")
}

fn turn_away_as_told(wire: Wire, answer: &[u8]) -> i32 {
    match answer.strip_prefix(REFUSED) {
        Some(message) => say(wire, message),
        None => no_such_session(wire),
    }
}

impl Session<'_> {
    /// Answers a visitor.
    pub(super) fn visited(&mut self, visitor: SessionChannel) {
        let Ok((message, descriptors)) = visitor.set_patience(VISITOR).and_then(|()| visitor.receive())
        else {
            return;
        };
        let message = Zeroizing::new(message);
        let answer = self.answer(&message, descriptors);
        let sent = visitor.send(&answer, &[]);
        if answer == WAITS
            && sent.is_ok()
            && let Ok(agents) = &mut self.agents
        {
            agents.add(visitor);
        }
    }

    fn answer(&mut self, message: &[u8], mut descriptors: Vec<OwnedFd>) -> Vec<u8> {
        let foreign = FOREIGN.to_vec();
        let Some(raw) = self.owner.strip(message) else { return foreign };
        let Ok(Some((request, rest))) = RequestReader::new().read(raw) else { return foreign };
        match request {
            Request::List => self.description().into_bytes(),
            Request::Resume(resume) if self.server.ticket().opens(&resume.ticket) => {
                let wire = descriptors.pop().map(UnixStream::from).map(Wire::new);
                let Some(Ok(wire)) = wire else { return foreign };
                match self.server.attach(Some(&resume), self.clock.now()) {
                    Ok(()) => {
                        self.take_stream(Opened { wire, rest });
                        TAKEN.to_vec()
                    }
                    Err(why) => [REFUSED, &refusal(&why)].concat(),
                }
            }
            Request::Agent(ticket) if self.server.ticket().opens(&ticket) => match &self.agents {
                Ok(agents) if agents.has_room() => WAITS.to_vec(),
                other => {
                    let text = other.as_ref().err().unwrap_or(&"so many streams wait for the agent already");
                    let text = (*text).to_owned();
                    [REFUSED, &refusal(&Refusal { reason: RefusedReason::NotAllowed, text })].concat()
                }
            },
            _ => foreign,
        }
    }
}

/// The socket at which programs of a session find the client's agent, and streams that wait for them.
pub(super) struct AgentDoor {
    listener: UnixListener,
    name: String,
    waiting: VecDeque<SessionChannel>,
}

impl AgentDoor {
    /// Makes the socket, and tells programs of it.
    pub(super) fn open(
        port: &KeeperPort,
        number: SessionNumber,
        environment: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) -> io::Result<AgentDoor> {
        let name = format!("{number}.agent");
        let listener = UnixListener::bind(&name)?;
        let door = AgentDoor { listener, name, waiting: VecDeque::new() };
        door.listener.set_nonblocking(true)?;
        let path = port.folder().join(&door.name).into_os_string().into_encoded_bytes();
        environment.push((b"SSH_AUTH_SOCK".to_vec(), path));
        Ok(door)
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < AGENTS_MAX
    }

    fn add(&mut self, visitor: SessionChannel) {
        self.waiting.push_back(visitor);
    }

    /// Gives connections to streams that wait for one; whether there were any.
    pub(super) fn serve(&mut self) -> bool {
        // Those that have gone away.
        self.waiting.retain(|visitor| {
            matches!(visitor.receive_now(), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
        });
        let mut moved = false;
        while !self.waiting.is_empty() {
            let Ok((connection, _)) = self.listener.accept() else { break };
            moved = true;
            while let Some(visitor) = self.waiting.pop_front() {
                if visitor.send(b"agent", &[connection.as_fd()]).is_ok() {
                    break;
                }
            }
        }
        moved
    }

    /// What is awaited: a connection, if a stream waits for one, and that this stream goes away.
    pub(super) fn interest(&self) -> (PollFd<'_>, PollFd<'_>) {
        match self.waiting.front() {
            Some(first) => (PollFd::readable(self.listener.as_fd()), PollFd::readable(first.as_fd())),
            None => (PollFd::ignored(), PollFd::ignored()),
        }
    }
}

impl Drop for AgentDoor {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_its_owners_and_of_no_other_that_looks_like_it() {
        let owner = |key: &str, principal: &str| SessionOwner {
            key: key.to_owned(),
            principal: principal.to_owned(),
        };
        let (key, other) = ("k".repeat(KEY_LEN), "o".repeat(KEY_LEN));
        let all = [(&key, "alice@R"), (&key, "alice@"), (&key, "alice@Rr"), (&key, ""), (&other, "alice@R")];
        for (at, (key, principal)) in all.iter().enumerate() {
            let message = [&*owner(key, principal).bytes().unwrap(), b"Brest"].concat();
            for (other_at, (key, principal)) in all.iter().enumerate() {
                let stripped = owner(key, principal).strip(&message).map(<[u8]>::to_vec);
                assert_eq!(stripped, (at == other_at).then(|| b"Brest".to_vec()), "{at} {other_at}");
            }
        }
        assert!(owner(&key, &"a".repeat(70_000)).bytes().is_err());
        assert!(owner("short", "").bytes().is_err());
    }

    #[test]
    fn what_a_session_says_of_itself_is_read_back() {
        let number = SessionNumber(0xab);
        let listed = parse(number, b"1700000000 12 1 top -d 1").unwrap();
        assert_eq!((listed.since, listed.idle, listed.attached), (1_700_000_000, 12, true));
        assert_eq!(listed.what, "top -d 1");
        for wrong in [&b"foreign"[..], b"1 2", b"1 2 x y", b"\xff", b""] {
            assert!(parse(number, wrong).is_none());
        }
        assert_eq!(number_of("00000000000000ab"), Some(number));
        assert_eq!(number_of(&socket_name(number)), Some(number));
        for wrong in ["00000000000000ab.agent", "ab", "+0000000000000ab"] {
            assert_eq!(number_of(wrong), None, "{wrong}");
        }
    }
}
