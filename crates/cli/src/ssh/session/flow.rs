//! What goes through a session: input, output, its end.

use strait_clock::Time;
use strait_login::{ClientEvent, Exit, LoginClient, OutputKind, RefusedReason};
use strait_ssh::{Ended, OutputStream, SshError, SshServer};

use super::{Session, Way};
use crate::failure::Failure;

/// Output that is put together to one piece at most: what that takes beside its bytes is little then, and so is what is copied.
const TOGETHER: usize = 4096;

impl Session {
    /// Moves what can be moved, and says whether it was anything.
    pub(in super::super) fn pump(&mut self, server: &mut SshServer, now: Time) -> Result<bool, SshError> {
        let mut moved = self.give_input(server)?;
        moved |= self.take_events();
        moved |= self.give_output(server)?;
        moved |= self.tell_end(server)?;
        moved |= self.give_stream(now);
        Ok(moved)
    }

    fn give_input(&mut self, server: &mut SshServer) -> Result<bool, SshError> {
        if self.ended.is_some() || self.closed {
            // Nothing takes it any more; `ssh` is not to wait for that.
            let count = self.input.len();
            self.input.clear();
            server.taken(self.channel, count)?;
            return Ok(count > 0);
        }
        let Some(client) = &mut self.client else { return Ok(false) };
        let mut moved = false;
        loop {
            let (front, _) = self.input.as_slices();
            let count = if front.is_empty() { 0 } else { client.input(front) };
            if count == 0 {
                break;
            }
            self.input.drain(..count);
            server.taken(self.channel, count)?;
            moved = true;
        }
        if self.input_ended && self.input.is_empty() {
            self.input_ended = false;
            client.end_input();
            moved = true;
        }
        Ok(moved)
    }

    fn take_events(&mut self) -> bool {
        let mut moved = false;
        while let Some(event) = self.client.as_mut().and_then(LoginClient::next_event) {
            moved = true;
            match event {
                ClientEvent::Output { kind, bytes } => {
                    let stream = if kind == OutputKind::Err { OutputStream::Err } else { OutputStream::Out };
                    self.queue_output(stream, bytes);
                }
                ClientEvent::Screen(bytes) | ClientEvent::Scrollback(bytes) => {
                    self.queue_output(OutputStream::Out, bytes);
                }
                ClientEvent::OutputEnded(_) => self.outputs = self.outputs.saturating_sub(1),
                ClientEvent::Exited(exit) => self.ended = Some(ended(exit)),
                ClientEvent::Refused(refusal) => {
                    let failure = Failure::new(format!("the peer refuses: {}", refusal.text));
                    self.fail(&match refusal.reason {
                        RefusedReason::NotAllowed | RefusedReason::NoSuchAccount => failure.remedy(
                            "name an account that the peer lets this node use: ssh ACCOUNT@PEER, or `User ACCOUNT` in ~/.ssh/config",
                        ),
                        _ => failure,
                    });
                }
                // `ssh` draws what it is sent, and its user types blind.
                ClientEvent::Started { .. }
                | ClientEvent::Modes(_)
                | ClientEvent::InputTaken(_)
                | ClientEvent::Sessions(_) => {}
            }
        }
        moved
    }

    /// Bytes for `ssh`. Small pieces are put together: the window counts bytes, and each piece takes memory, too.
    fn queue_output(&mut self, stream: OutputStream, bytes: Vec<u8>) {
        match self.output.back_mut() {
            Some((last, there)) if *last == stream && there.len() + bytes.len() <= TOGETHER => {
                there.extend_from_slice(&bytes);
            }
            last => {
                if let Some((_, full)) = last {
                    full.shrink_to_fit();
                }
                self.output.push_back((stream, bytes));
            }
        }
    }

    fn give_output(&mut self, server: &mut SshServer) -> Result<bool, SshError> {
        let mut moved = false;
        while let Some((stream, bytes)) = self.output.front_mut() {
            let count =
                if self.unwanted { bytes.len() } else { server.data(self.channel, *stream, bytes)? };
            bytes.drain(..count);
            if let Some(client) = self.client.as_mut().filter(|_| count > 0) {
                client.output_taken(count);
            }
            moved |= count > 0;
            if !bytes.is_empty() {
                break;
            }
            self.output.pop_front();
        }
        if self.outputs == 0 && self.output.is_empty() {
            // Said once; the server knows.
            server.eof(self.channel)?;
        }
        Ok(moved)
    }

    /// Tells `ssh` how it ended, once all output is told.
    fn tell_end(&mut self, server: &mut SshServer) -> Result<bool, SshError> {
        if self.closed || !self.output.is_empty() {
            return Ok(false);
        }
        let Some(ended) = &self.ended else { return Ok(false) };
        server.eof(self.channel)?;
        server.ended(self.channel, ended)?;
        server.close(self.channel)?;
        self.closed = true;
        if self.client.is_none() {
            self.way = Way::Over;
        }
        Ok(true)
    }
}

fn ended(exit: Exit) -> Ended {
    match exit {
        Exit::Status(status) => Ended::Status(u32::from(status)),
        Exit::Signal { name, core_dumped, message } => {
            Ended::Signal { name: name.into_bytes(), core_dumped, message }
        }
    }
}
