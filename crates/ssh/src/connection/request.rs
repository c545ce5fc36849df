//! What is asked of a session (RFC 4254 section 6), and of the connection (section 4).

use super::channel::Kind;
use super::{ChannelNumber, Connection, FAILURE, Outgoing, REQUEST_FAILURE, SUCCESS};
use crate::error::SshError;
use crate::event::{Program, Size, SshEvent};
use crate::fields::Fields;

/// Longest name of a program that a session may be asked for: a command line, as long as the system's longest argument.
const PROGRAM_MAX: usize = 128 * 1024;
/// Longest name and value of a variable together, type of a terminal and list of its modes.
const SMALL_MAX: usize = 4096;

impl Connection {
    /// A request about a channel. What is understood is granted at once: an error comes as the session's own.
    pub(super) fn session_request(
        &mut self,
        number: ChannelNumber,
        mut fields: Fields<'_>,
        out: &mut impl Outgoing,
    ) -> Result<(), SshError> {
        let (name, reply) = (fields.string()?, fields.boolean()?);
        let Some(channel) = self.channels.get_mut(&number) else { return Ok(()) };
        let event = match (channel.kind, channel.started) {
            (Kind::Session, false) => before_start(number, name, fields)?,
            (Kind::Session, true) => while_running(number, name, fields)?,
            (Kind::Tcp | Kind::Agent, _) => None,
        };
        channel.started |= matches!(event, Some(SshEvent::Start(..)));
        if reply {
            let answer = channel.message(if event.is_some() { SUCCESS } else { FAILURE });
            out.send(answer)?;
        }
        self.events.extend(event);
        Ok(())
    }

    /// A request about the connection: none is granted. `ssh` asks for one to see whether the other end lives.
    pub(super) fn global(&mut self, mut fields: Fields<'_>, out: &mut impl Outgoing) -> Result<(), SshError> {
        let (name, reply) = (fields.string()?, fields.boolean()?);
        if matches!(name, b"tcpip-forward" | b"streamlocal-forward@openssh.com") {
            self.events.push_back(SshEvent::RemoteForwardRefused);
        }
        if reply { out.send(vec![REQUEST_FAILURE]) } else { Ok(()) }
    }
}

fn before_start(
    number: ChannelNumber,
    name: &[u8],
    mut fields: Fields<'_>,
) -> Result<Option<SshEvent>, SshError> {
    Ok(match name {
        b"pty-req" => {
            let term = fields.string()?.to_vec();
            let size = size(&mut fields)?;
            let modes = fields.string()?.to_vec();
            let fits = term.len() <= SMALL_MAX && modes.len() <= SMALL_MAX;
            fits.then_some(SshEvent::Terminal { channel: number, term, size, modes })
        }
        b"env" => {
            let (name, value) = (fields.string()?, fields.string()?);
            let fits = name.len() + value.len() <= SMALL_MAX;
            fits.then(|| SshEvent::Environment(number, name.to_vec(), value.to_vec()))
        }
        b"auth-agent-req@openssh.com" => Some(SshEvent::Agent(number)),
        b"shell" => Some(SshEvent::Start(number, Program::Shell)),
        b"exec" | b"subsystem" => {
            let what = fields.string()?;
            let make = if name == b"exec" { Program::Command } else { Program::Subsystem };
            (what.len() <= PROGRAM_MAX).then(|| SshEvent::Start(number, make(what.to_vec())))
        }
        _ => None,
    })
}

fn while_running(
    number: ChannelNumber,
    name: &[u8],
    mut fields: Fields<'_>,
) -> Result<Option<SshEvent>, SshError> {
    Ok(match name {
        b"window-change" => Some(SshEvent::Resize(number, size(&mut fields)?)),
        b"signal" => Some(SshEvent::Signal(number, fields.string()?.to_vec())),
        b"eow@openssh.com" => Some(SshEvent::OutputUnwanted(number)),
        _ => None,
    })
}

fn size(fields: &mut Fields<'_>) -> Result<Size, SshError> {
    let (columns, rows) = (fields.number()?, fields.number()?);
    Ok(Size { columns, rows, width: fields.number()?, height: fields.number()? })
}
