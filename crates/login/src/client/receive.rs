//! What a client makes of the server's messages.

use strait_clock::Time;

use super::{ClientEvent, LoginClient, Stage};
use crate::incoming::Incoming;
use crate::log::{CONTROL, SendLog};
use crate::message::{Channel, LoginMessage, MessageUnit};
use crate::screen::decode_rows;
use crate::{LoginError, OutputKind, Refusal, RefusedReason, Request};

impl LoginClient {
    /// Takes bytes of the stream, cut anywhere.
    ///
    /// # Errors
    /// [`LoginError`] for what a server does not write; the stream is of no use then.
    pub fn received(&mut self, bytes: &[u8], now: Time) -> Result<(), LoginError> {
        self.now = now;
        let mut framer = core::mem::take(&mut self.stream.framer);
        framer.push(bytes);
        while !matches!(self.stage, Stage::Over | Stage::Away)
            && let Some((ack, message)) = framer.next_message()?
        {
            if self.stage == Stage::Open {
                self.acknowledged(ack, &message)?;
                self.session_message(message)?;
            } else {
                self.answer(message)?;
            }
        }
        self.stream.framer = framer;
        Ok(())
    }

    /// The first message of a stream.
    fn answer(&mut self, message: LoginMessage<'_>) -> Result<(), LoginError> {
        match (message, &self.request) {
            // On the next stream it begins.
            (
                LoginMessage::Refused(Refusal { reason: RefusedReason::NoSuchSession, .. }),
                Request::Resume(_),
            ) if self.stage == Stage::Asked && self.wanted.is_some() => {
                self.stage = Stage::Away;
                self.may_be_there = false;
            }
            // What was asked for before arrived later.
            (LoginMessage::Refused(Refusal { reason: RefusedReason::Begun, .. }), Request::Start(..)) => {
                self.stage = Stage::Away;
                self.may_be_there = true;
            }
            // By the head of the stream a server may know that it does not serve it, before the request is on its way.
            (LoginMessage::Refused(refusal), _) if matches!(self.stage, Stage::Asking | Stage::Asked) => {
                self.over(ClientEvent::Refused(refusal));
            }
            _ if self.stage != Stage::Asked => return Err(LoginError::Order),
            (LoginMessage::Sessions(all), Request::List) => self.over(ClientEvent::Sessions(all)),
            (LoginMessage::Started { account }, Request::Start(..)) => {
                self.confirms = true;
                self.opened(account);
            }
            (LoginMessage::Resumed { account, client, input, output }, Request::Resume(resume)) => {
                if resume.point.is_some() {
                    let same = self.number == Some(client) && output == self.incoming.received();
                    if !same || !self.log.rewind(input) {
                        return Err(LoginError::Order);
                    }
                } else {
                    self.adopt(client, input, output);
                }
                self.opened(account);
            }
            _ => return Err(LoginError::Order),
        }
        Ok(())
    }

    fn opened(&mut self, account: String) {
        self.stage = Stage::Open;
        self.wanted = None;
        self.events.push_back(ClientEvent::Started { account });
    }

    /// Goes on where another client was.
    fn adopt(&mut self, client: u32, input: u64, output: u64) {
        self.number = Some(client);
        self.incoming = Incoming::new(output, self.incoming.window(), self.incoming.policy());
        let before = core::mem::replace(&mut self.log, SendLog::at(input));
        before.move_waiting_to(&mut self.log, self.now);
    }

    fn over(&mut self, event: ClientEvent) {
        self.events.push_back(event);
        self.stage = Stage::Over;
    }

    fn acknowledged(&mut self, ack: u32, message: &LoginMessage<'_>) -> Result<(), LoginError> {
        if !self.log.acknowledge(ack)? {
            return Ok(());
        }
        let at_once = !matches!(message, LoginMessage::Small([]));
        self.trip.acked(self.log.acked(), at_once, self.now);
        let taken = self.log.bytes_acked();
        if taken > self.input_told {
            self.input_told = taken;
            self.events.push_back(ClientEvent::InputTaken(taken));
        }
        Ok(())
    }

    /// A message of a session that is open.
    fn session_message(&mut self, message: LoginMessage<'_>) -> Result<(), LoginError> {
        match message {
            LoginMessage::Small(bytes) => self.output(Channel::Terminal, bytes.to_vec()),
            LoginMessage::Unit(channel, unit) => self.unit(channel, &unit),
            LoginMessage::End(channel) => {
                let kind = channel.output().ok_or(LoginError::Order)?;
                self.told(ClientEvent::OutputEnded(kind))
            }
            LoginMessage::Modes(modes) => self.told(ClientEvent::Modes(modes)),
            LoginMessage::Exited(exit) => {
                self.told(ClientEvent::Exited(exit))?;
                self.incoming.hurry();
                self.exited = true;
                Ok(())
            }
            _ => Err(LoginError::Order),
        }
    }

    fn unit(&mut self, channel: Channel, unit: &MessageUnit<'_>) -> Result<(), LoginError> {
        if matches!(channel, Channel::Input | Channel::Forwarded) {
            return Err(LoginError::Order);
        }
        // Before memory is taken.
        if !self.incoming.has_room(unit.raw() as u64) {
            return Err(LoginError::Window);
        }
        let bytes = self.stream.expander.expand(unit)?;
        self.output(channel, bytes)
    }

    fn output(&mut self, channel: Channel, bytes: Vec<u8>) -> Result<(), LoginError> {
        let cost = bytes.len() as u64;
        if bytes.is_empty() {
            return Ok(());
        }
        let event = match (channel.output(), channel, &mut self.screen) {
            (Some(kind), _, screen) => {
                if let Some(screen) = screen.as_mut().filter(|_| kind == OutputKind::Terminal) {
                    screen.process(&bytes);
                }
                ClientEvent::Output { kind, bytes }
            }
            (None, Channel::Screen, Some(screen)) => {
                let mut all = Vec::new();
                if core::mem::take(&mut self.foreign) {
                    all = clear_by_scrolling(screen.size().rows);
                }
                screen.process(&bytes);
                all.extend(bytes);
                ClientEvent::Screen(all)
            }
            (None, Channel::Scrollback, Some(screen)) => {
                ClientEvent::Scrollback(screen.scroll_off(&decode_rows(&bytes)?))
            }
            _ => return Err(LoginError::Order),
        };
        let given = match &event {
            ClientEvent::Output { bytes, .. }
            | ClientEvent::Screen(bytes)
            | ClientEvent::Scrollback(bytes) => bytes.len() as u64,
            _ => 0,
        };
        self.incoming.arrived(cost, given, self.now)?;
        self.events.push_back(event);
        Ok(())
    }

    fn told(&mut self, event: ClientEvent) -> Result<(), LoginError> {
        self.incoming.arrived(CONTROL, 0, self.now)?;
        self.events.push_back(event);
        Ok(())
    }
}

/// Moves what a terminal shows to its scrollback.
fn clear_by_scrolling(rows: u16) -> Vec<u8> {
    let mut bytes = format!("\x18\x1b[r\x1b[{rows};1H").into_bytes();
    bytes.extend(b"\r\n".repeat(usize::from(rows)));
    bytes
}
