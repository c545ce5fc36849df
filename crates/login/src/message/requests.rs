//! The bodies of requests.

use zeroize::Zeroizing;

use super::fields::{FieldReader, put_number, put_string};
use super::{LoginMessage, MAX_REQUEST};
use crate::{
    LoginError, Program, Request, ResumePoint, ResumeRequest, SessionNumber, SessionRequest, Terminal,
    Ticket, WindowSize,
};

/// A name of a variable, of a subsystem or of a host at most.
const MAX_NAME: usize = 255;
/// The value of `TERM` at most.
const MAX_TERM: usize = 64;
/// Encoded modes at most: each of the 159 opcodes once, with its value, and the end.
const MAX_MODES: usize = 159 * 5 + 1;
/// Variables of a request at most.
const MAX_VARIABLES: usize = 256;

impl SessionRequest {
    /// Whether a server understands it: nothing is too long, and no string has a zero byte.
    ///
    /// # Errors
    /// [`LoginError::Bound`] and [`LoginError::Text`].
    pub fn check(&self) -> Result<(), LoginError> {
        let mut body = Vec::new();
        self.put(&mut body);
        if body.len() > MAX_REQUEST {
            return Err(LoginError::Bound);
        }
        SessionRequest::parse(&mut FieldReader::new(&body)).map(drop)
    }

    pub(super) fn parse(body: &mut FieldReader<'_>) -> Result<SessionRequest, LoginError> {
        let kind = body.byte()?;
        let program = match kind {
            0 => Program::Shell,
            1 => Program::Command(c_string(body, MAX_REQUEST)?),
            2 => Program::Subsystem(name(body)?),
            _ => return Err(LoginError::Unknown),
        };
        let terminal = body.flag()?.then(|| Terminal::parse(body)).transpose()?;
        let agent = body.flag()?;
        let mut environment = Vec::new();
        while !body.is_empty() {
            let (variable, value) = (name(body)?, c_string(body, MAX_REQUEST)?);
            if variable.contains(&b'=') {
                return Err(LoginError::Text);
            }
            if environment.len() == MAX_VARIABLES {
                return Err(LoginError::Bound);
            }
            environment.push((variable, value));
        }
        Ok(SessionRequest { program, terminal, environment, agent })
    }

    fn put(&self, out: &mut Vec<u8>) {
        match &self.program {
            Program::Shell => out.push(0),
            Program::Command(command) => {
                out.push(1);
                put_string(out, command);
            }
            Program::Subsystem(name) => {
                out.push(2);
                put_string(out, name);
            }
        }
        out.push(u8::from(self.terminal.is_some()));
        if let Some(terminal) = &self.terminal {
            put_string(out, &terminal.term);
            put_size(out, terminal.size);
            put_string(out, &terminal.modes);
        }
        out.push(u8::from(self.agent));
        for (variable, value) in &self.environment {
            put_string(out, variable);
            put_string(out, value);
        }
    }
}

impl Terminal {
    fn parse(body: &mut FieldReader<'_>) -> Result<Terminal, LoginError> {
        let term = c_string(body, MAX_TERM)?;
        let size = size(body)?;
        let modes = body.string(MAX_MODES)?.to_vec();
        if !modes.is_empty() && !are_modes(&modes) {
            return Err(LoginError::Unknown);
        }
        Ok(Terminal { term, size, modes })
    }
}

/// Whether these are opcodes with values, as in RFC 4254 section 8, and the end. Opcodes from 160 on have no value that is known.
fn are_modes(mut modes: &[u8]) -> bool {
    while let Some((&opcode, rest)) = modes.split_first() {
        match opcode {
            0 => return rest.is_empty(),
            1..160 if rest.len() >= 4 => modes = &rest[4..],
            _ => return false,
        }
    }
    false
}

pub(super) fn size(body: &mut FieldReader<'_>) -> Result<WindowSize, LoginError> {
    let (columns, rows) = (body.number16()?, body.number16()?);
    Ok(WindowSize { columns, rows, width: body.number16()?, height: body.number16()? })
}

pub(super) fn put_size(out: &mut Vec<u8>, size: WindowSize) {
    for number in [size.columns, size.rows, size.width, size.height] {
        put_number(out, u64::from(number));
    }
}

/// A byte string without zero bytes.
fn c_string(body: &mut FieldReader<'_>, limit: usize) -> Result<Vec<u8>, LoginError> {
    let string = body.string(limit)?;
    if string.contains(&0) { Err(LoginError::Text) } else { Ok(string.to_vec()) }
}

/// The same, and not empty.
fn name(body: &mut FieldReader<'_>) -> Result<Vec<u8>, LoginError> {
    let name = c_string(body, MAX_NAME)?;
    if name.is_empty() { Err(LoginError::Bound) } else { Ok(name) }
}

fn ticket(body: &mut FieldReader<'_>) -> Result<Ticket, LoginError> {
    let session = SessionNumber(u64::from_le_bytes(body.fixed()?));
    let secret = Zeroizing::new(body.fixed::<32>()?);
    Ok(Ticket::new(session, *secret))
}

fn put_ticket(out: &mut Vec<u8>, ticket: &Ticket) {
    out.extend(ticket.session().0.to_le_bytes());
    out.extend(ticket.secret());
}

/// The request with this head; nothing if it is another message's.
pub(super) fn parse(
    head: u8,
    body: &mut FieldReader<'_>,
) -> Result<Option<LoginMessage<'static>>, LoginError> {
    Ok(Some(match head {
        0x40 => LoginMessage::Start(ticket(body)?, SessionRequest::parse(body)?),
        0x41 => {
            let ticket = ticket(body)?;
            let known = body.flag()?;
            let point = if known {
                let client = u32::try_from(body.number()?).map_err(|_| LoginError::Bound)?;
                Some(ResumePoint { client, received: body.number()? })
            } else {
                None
            };
            LoginMessage::Resume(ResumeRequest { ticket, point })
        }
        0x42 => LoginMessage::List,
        0x43 => {
            let host = name(body)?;
            LoginMessage::Connect { host, port: body.number16()? }
        }
        0x44 => LoginMessage::Agent(ticket(body)?),
        _ => return Ok(None),
    }))
}

/// Appends the body of a request and gives its head; nothing for other messages.
pub(super) fn put(message: &LoginMessage<'_>, out: &mut Vec<u8>) -> Option<u8> {
    Some(match message {
        LoginMessage::Start(ticket, request) => {
            put_ticket(out, ticket);
            request.put(out);
            0x40
        }
        LoginMessage::Resume(resume) => {
            put_ticket(out, &resume.ticket);
            out.push(u8::from(resume.point.is_some()));
            if let Some(point) = resume.point {
                put_number(out, u64::from(point.client));
                put_number(out, point.received);
            }
            0x41
        }
        LoginMessage::List => 0x42,
        LoginMessage::Connect { host, port } => {
            put_string(out, host);
            put_number(out, u64::from(*port));
            0x43
        }
        LoginMessage::Agent(ticket) => {
            put_ticket(out, ticket);
            0x44
        }
        _ => return None,
    })
}

impl Request {
    pub(crate) fn message(&self) -> LoginMessage<'static> {
        match self {
            Request::Start(ticket, request) => LoginMessage::Start(ticket.clone(), request.clone()),
            Request::Resume(resume) => LoginMessage::Resume(resume.clone()),
            Request::List => LoginMessage::List,
            Request::Connect { host, port } => LoginMessage::Connect { host: host.clone(), port: *port },
            Request::Agent(ticket) => LoginMessage::Agent(ticket.clone()),
        }
    }

    pub(crate) fn from_message(message: LoginMessage<'_>) -> Option<Request> {
        Some(match message {
            LoginMessage::Start(ticket, request) => Request::Start(ticket, request),
            LoginMessage::Resume(resume) => Request::Resume(resume),
            LoginMessage::List => Request::List,
            LoginMessage::Connect { host, port } => Request::Connect { host, port },
            LoginMessage::Agent(ticket) => Request::Agent(ticket),
            _ => return None,
        })
    }
}
