//! What `ssh` asks for: sessions that have not begun, and then what they become.

use strait_clock::Time;
use strait_login::{Program as LoginProgram, SessionRequest, Terminal, WindowSize};
use strait_ssh::{ChannelNumber, OpenRefusal, Program, Size, SshError, SshEvent};
use strait_stream::StreamPriority;

use super::super::forward::Forward;
use super::super::session::Session;
use super::Bridge;
use crate::output::note;

/// Variables of a session, and their bytes together: beyond, they are left out, as a server's configuration would.
const VARIABLES_MAX: usize = 128;
const VARIABLE_BYTES_MAX: usize = 32 * 1024;

/// A session that has not begun.
#[derive(Default)]
pub(super) struct Asked {
    terminal: Option<Terminal>,
    environment: Vec<(Vec<u8>, Vec<u8>)>,
    agent: bool,
    /// What came before it began, and whether that was all.
    input: Vec<u8>,
    ended: bool,
}

impl Asked {
    /// Notes a variable, if there is room.
    fn variable(&mut self, name: Vec<u8>, value: Vec<u8>) {
        let bytes: usize = self.environment.iter().map(|(name, value)| name.len() + value.len()).sum();
        if self.environment.len() < VARIABLES_MAX && bytes + name.len() + value.len() <= VARIABLE_BYTES_MAX {
            self.environment.push((name, value));
        }
    }
}

impl Bridge {
    /// Does what `ssh` asks for.
    pub(super) fn event(&mut self, event: SshEvent, now: Time) -> Result<(), SshError> {
        match event {
            SshEvent::User(name) => self.account = name,
            SshEvent::OpenSession(channel) => {
                self.asked.insert(channel, Asked::default());
            }
            SshEvent::OpenTcp { channel, host, port } => return self.open_port(channel, host, port),
            SshEvent::Terminal { channel, term, size, modes } => {
                if let Some(asked) = self.asked.get_mut(&channel) {
                    asked.terminal = Some(Terminal { term, size: window(size), modes });
                }
            }
            SshEvent::Environment(channel, name, value) => {
                if let Some(asked) = self.asked.get_mut(&channel) {
                    asked.variable(name, value);
                }
            }
            SshEvent::Agent(channel) => {
                if let Some(asked) = self.asked.get_mut(&channel) {
                    asked.agent = true;
                }
            }
            SshEvent::Start(channel, program) => self.start(channel, program, now),
            SshEvent::Data(channel, bytes) => match self.asked.get_mut(&channel) {
                Some(asked) => asked.input.extend_from_slice(&bytes),
                None => self.of(channel, |it| it.data(&bytes), |it| it.data(&bytes)),
            },
            SshEvent::Eof(channel) => match self.asked.get_mut(&channel) {
                Some(asked) => asked.ended = true,
                None => self.of(channel, Session::eof, Forward::eof),
            },
            SshEvent::Resize(channel, size) => self.of(channel, |it| it.resize(window(size)), |_| ()),
            SshEvent::Signal(channel, name) => self.of(channel, |it| it.signal(&name), |_| ()),
            SshEvent::OutputUnwanted(channel) => self.of(channel, Session::output_unwanted, |_| ()),
            SshEvent::OpenFailed(channel) => self.of(channel, |_| (), Forward::close),
            SshEvent::Closed(channel) => {
                self.asked.remove(&channel);
                if !self.of(channel, Session::closed_by_ssh, Forward::closed_by_ssh) {
                    return self.server.close(channel);
                }
            }
            SshEvent::Opened(channel) => {
                // The program that asked for the agent may have ended meanwhile.
                if !self.forwards.values().any(|forward| forward.channel() == Some(channel)) {
                    return self.server.close(channel);
                }
            }
            SshEvent::RemoteForwardRefused => {
                note(format_args!("strait: ports of the peer cannot be forwarded to this host (ssh -R)\r"));
                note(format_args!(
                    "  forward it from the peer with `ssh -L` to this node, or reach this host by its address inside the tunnel\r"
                ));
            }
        }
        Ok(())
    }

    /// Does something with the session or the connection of a channel, if there is one.
    fn of<T: Default>(
        &mut self,
        channel: ChannelNumber,
        session: impl FnOnce(&mut Session) -> T,
        forward: impl FnOnce(&mut Forward) -> T,
    ) -> T {
        if let Some(found) = self.sessions.values_mut().find(|it| it.channel() == channel) {
            session(found)
        } else if let Some(found) = self.forwards.values_mut().find(|it| it.channel() == Some(channel)) {
            forward(found)
        } else {
            T::default()
        }
    }

    fn start(&mut self, channel: ChannelNumber, program: Program, now: Time) {
        let Some(asked) = self.asked.remove(&channel) else { return };
        let program = match program {
            Program::Shell => LoginProgram::Shell,
            Program::Command(command) => LoginProgram::Command(command),
            Program::Subsystem(name) => LoginProgram::Subsystem(name),
        };
        let Asked { terminal, environment, agent, input, ended } = asked;
        let mut session =
            Session::new(channel, SessionRequest { program, terminal, environment, agent }, now);
        session.data(&input);
        if ended {
            session.eof();
        }
        let part = self.new_part();
        self.sessions.insert(part, session);
    }

    fn open_port(&mut self, channel: ChannelNumber, host: Vec<u8>, port: u32) -> Result<(), SshError> {
        let Some(port) = u16::try_from(port).ok().filter(|_| host.len() <= usize::from(u8::MAX)) else {
            return self.server.refuse(channel, OpenRefusal::ConnectFailed, "there is no such port");
        };
        let part = self.new_part();
        self.forwards.insert(part, Forward::port(channel, host, port));
        self.opener.open(part, &self.account, StreamPriority::Normal);
        Ok(())
    }
}

/// A window's size as the login client takes it.
fn window(size: Size) -> WindowSize {
    let small = |number| u16::try_from(number).unwrap_or(u16::MAX);
    WindowSize {
        columns: small(size.columns),
        rows: small(size.rows),
        width: small(size.width),
        height: small(size.height),
    }
}
