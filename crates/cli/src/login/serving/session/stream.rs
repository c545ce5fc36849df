//! A session's stream: what the client says and hears, and the loss of it.

use std::os::fd::AsFd;
use std::time::Duration;

use strait_login::ServerEvent;
use strait_node::poll::{self, PollFd};

use super::super::super::wire::{Wire, WireRead};
use super::super::keeper::Opened;
use super::Session;

impl Session<'_> {
    /// A stream is attached.
    pub(in crate::login::serving) fn take_stream(&mut self, opened: Opened) {
        self.wire = Some(opened.wire);
        self.alone_since = None;
        self.received(&opened.rest);
    }

    /// Bytes of the client.
    pub(super) fn read_stream(&mut self, buffer: &mut [u8]) -> bool {
        let Some(wire) = &mut self.wire else { return false };
        match wire.read(buffer) {
            WireRead::Nothing => false,
            WireRead::Bytes(length) => {
                self.received(buffer.get(..length).unwrap_or_default());
                true
            }
            WireRead::End => {
                // Both ends are closed where the stream was lost; where the client's process ended, its own only.
                let mut ends = [PollFd::ready_to(wire.as_fd(), false, false)];
                let lost = poll::wait(&mut ends, Some(Duration::ZERO)).is_err() || ends[0].is_gone();
                self.lose_stream();
                let left = std::mem::take(&mut self.left);
                if !lost && !left && !self.program.has_terminal() {
                    self.hang_up();
                }
                true
            }
        }
    }

    fn received(&mut self, bytes: &[u8]) {
        let now = self.clock.now();
        let good = self.server.received(bytes, now);
        self.handle_events();
        if let Err(error) = good {
            tracing::info!("a stream of a login is given up: {error}");
            self.lose_stream();
        }
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.server.next_event() {
            match event {
                ServerEvent::Input(bytes) => {
                    self.typed = self.clock.now();
                    if self.program.takes_input() {
                        self.program.input(&bytes);
                    }
                }
                ServerEvent::InputEnded => self.program.end_input(),
                ServerEvent::Resize(size) => self.program.resize(size),
                ServerEvent::Signal(signal) => self.program.signal(signal),
                // The client closes its stream.
                ServerEvent::Detach => self.left = true,
                ServerEvent::HangUp => self.hang_up(),
            }
        }
    }

    /// What the server has for the client.
    pub(super) fn write_stream(&mut self) -> bool {
        let Some(wire) = &mut self.wire else { return false };
        let (server, now) = (&mut self.server, self.clock.now());
        match wire.write(|into, room| server.send(into, room, now)) {
            Ok(moved) => {
                if self.server.finished() && self.wire.as_ref().is_some_and(Wire::is_empty) {
                    self.exit_heard = self.exit_told;
                    self.lose_stream();
                    return true;
                }
                moved
            }
            Err(_) => {
                self.lose_stream();
                true
            }
        }
    }

    fn lose_stream(&mut self) {
        let now = self.clock.now();
        self.wire = None;
        self.server.stream_lost(now);
        self.alone_since = Some(now);
        self.handle_events();
    }
}
