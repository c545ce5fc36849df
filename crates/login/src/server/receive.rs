//! What a server makes of the client's messages.

use strait_clock::Time;

use super::{LoginServer, ServerEvent};
use crate::LoginError;
use crate::log::CONTROL;
use crate::message::{Channel, LoginMessage, MessageUnit};

impl LoginServer {
    /// Takes bytes of the stream, cut anywhere.
    ///
    /// # Errors
    /// [`LoginError`] for what a client does not write; the stream is of no use then.
    pub fn received(&mut self, bytes: &[u8], now: Time) -> Result<(), LoginError> {
        self.now = now;
        let mut framer = core::mem::take(&mut self.stream.framer);
        framer.push(bytes);
        while let Some((ack, message)) = framer.next_message()? {
            self.acknowledged(ack)?;
            self.message(message)?;
        }
        self.stream.framer = framer;
        Ok(())
    }

    fn acknowledged(&mut self, ack: u32) -> Result<(), LoginError> {
        let before = self.log.acked();
        if self.log.acknowledge(ack)? {
            self.known = true;
            let position = self.log.acked();
            self.pace.acked(position, position - before, self.now);
        }
        Ok(())
    }

    fn message(&mut self, message: LoginMessage<'_>) -> Result<(), LoginError> {
        match message {
            // What a client says without input, it says once it has heard that the session is there.
            LoginMessage::Small([]) => {
                self.known = true;
                Ok(())
            }
            LoginMessage::Small(bytes) => self.input(bytes.to_vec()),
            LoginMessage::Unit(Channel::Input, unit) => self.unit(&unit),
            LoginMessage::End(Channel::Input) => self.told(ServerEvent::InputEnded),
            LoginMessage::Resize(size) => {
                let size = size.clamped();
                if let Some(display) = &mut self.display {
                    display.resize(size);
                }
                self.told(ServerEvent::Resize(size))
            }
            LoginMessage::Signal(signal) => self.told(ServerEvent::Signal(signal)),
            LoginMessage::Detach => self.left(ServerEvent::Detach),
            LoginMessage::HangUp => self.left(ServerEvent::HangUp),
            _ => Err(LoginError::Order),
        }
    }

    fn unit(&mut self, unit: &MessageUnit<'_>) -> Result<(), LoginError> {
        // Before memory is taken.
        if !self.incoming.has_room(unit.raw() as u64) {
            return Err(LoginError::Window);
        }
        let bytes = self.stream.expander.expand(unit)?;
        self.input(bytes)
    }

    fn input(&mut self, bytes: Vec<u8>) -> Result<(), LoginError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let length = bytes.len() as u64;
        if self.input_closed {
            self.incoming.arrived(length, length, self.now)?;
            self.incoming.take_all(self.now);
            return Ok(());
        }
        self.incoming.arrived(length, length, self.now)?;
        self.events.push_back(ServerEvent::Input(bytes));
        self.typed();
        Ok(())
    }

    fn told(&mut self, event: ServerEvent) -> Result<(), LoginError> {
        self.incoming.arrived(CONTROL, 0, self.now)?;
        self.events.push_back(event);
        Ok(())
    }

    /// The client leaves, and closes the stream when it has heard that this is known.
    fn left(&mut self, event: ServerEvent) -> Result<(), LoginError> {
        if event == ServerEvent::HangUp {
            // Input that waits for the program is not to keep the client: none follows it.
            self.input_closed();
        }
        self.told(event)?;
        self.incoming.hurry();
        Ok(())
    }
}
