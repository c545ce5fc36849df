//! Programs that run in a session.

use strait_clock::Time;
use strait_login::{Exit, LoginServer, OutputKind, ServerEvent};

/// What a session runs: it gets events, and acts as far as there is room.
pub(crate) trait Program {
    fn event(&mut self, event: ServerEvent, server: &mut LoginServer, now: Time);
    /// Does what it can.
    fn run(&mut self, server: &mut LoginServer, now: Time);
    /// When it does something by itself.
    fn next(&self) -> Option<Time> {
        None
    }
}

/// Reads everything, writes something for it, and exits after the end of its input: `cat`, or a program that says something else.
#[derive(Debug)]
pub(crate) struct Filter {
    /// What it has read and not yet answered.
    unread: Vec<u8>,
    /// What it writes beside that, on standard error.
    errors: Vec<u8>,
    /// Bytes that it reads at once at most.
    step: usize,
    ended: bool,
    done: bool,
    pub(crate) read: Vec<u8>,
}

impl Filter {
    pub(crate) fn new(errors: Vec<u8>, step: usize) -> Filter {
        Filter { unread: Vec::new(), errors, step, ended: false, done: false, read: Vec::new() }
    }
}

impl Program for Filter {
    fn event(&mut self, event: ServerEvent, _server: &mut LoginServer, _now: Time) {
        match event {
            ServerEvent::Input(bytes) => self.unread.extend(bytes),
            ServerEvent::InputEnded => self.ended = true,
            other => panic!("unexpected: {other:?}"),
        }
    }

    fn run(&mut self, server: &mut LoginServer, now: Time) {
        loop {
            let most = server.output_room().min(self.step);
            if !self.errors.is_empty() && most > 0 {
                let piece: Vec<u8> = self.errors.drain(..most.min(self.errors.len())).collect();
                server.output(OutputKind::Err, &piece, now);
                continue;
            }
            let piece: Vec<u8> = self.unread.drain(..most.min(self.unread.len())).collect();
            if piece.is_empty() {
                break;
            }
            server.input_written(piece.len(), now);
            server.output(OutputKind::Out, &piece, now);
            self.read.extend(piece);
        }
        if self.ended && self.unread.is_empty() && self.errors.is_empty() && !self.done {
            self.done = true;
            server.output_ended(OutputKind::Out);
            server.output_ended(OutputKind::Err);
            server.exited(Exit::Status(7));
        }
    }
}
