//! A channel with a connection at its other end: a forwarded port, or the far end of the agent.
//!
//! As with sessions, nothing waits: bytes of the stream are read while few wait for `ssh`, and `ssh` is granted more as the stream
//! takes them.
//!
//! `ssh` closes a channel as soon as both directions have ended, while much of what it said may still be on its way. The channel is
//! closed at this end once the peer has ended the stream, which it does when its end of the connection has everything.

use std::collections::VecDeque;
use std::os::fd::AsFd;

use strait_login::{Forwarded, ForwardedEvent, Refusal, RefusedReason, Request};
use strait_node::poll::PollFd;
use strait_ssh::{ChannelNumber, OpenRefusal, OutputStream, SshError, SshServer};

use super::opener::PartNumber;
use crate::failure::Failure;
use crate::login::road::LoginStream;
use crate::login::wire::{Wire, WireRead};

/// Bytes that wait for `ssh` before no more is read of the stream: as much as the node takes from a process.
const OUTPUT_MAX: usize = 64 * 1024;

/// What is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Far {
    /// A port that `ssh` has asked for.
    Port,
    /// A program that asks the agent, of this session: `ssh` is asked for a channel when there is one.
    Agent(PartNumber),
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The stream is not there, or the far end is not.
    Waiting,
    /// Both ends are there.
    Open,
    /// It has ended.
    Over,
}

/// A forwarded connection.
pub(super) struct Forward {
    far: Far,
    /// None before a program asks the agent.
    channel: Option<ChannelNumber>,
    /// The first message of its stream.
    request: Vec<u8>,
    stage: Stage,
    /// Its stream, while it has one.
    wire: Option<Wire>,
    forwarded: Forwarded,
    /// From `ssh`, and for it.
    input: VecDeque<u8>,
    output: VecDeque<u8>,
    input_ended: bool,
    output_ended: bool,
    /// The stream takes nothing more; what it has is still read.
    unheard: bool,
    /// The stream has ended, or is lost; what arrived before is still told.
    stream_ended: bool,
    /// `ssh` has closed the channel, or is gone: what it has said goes on to the far end, what comes is dropped.
    unwanted: bool,
    /// The stream has all that `ssh` has said, and was told so.
    parted: bool,
    /// The words of a peer that refused it.
    refusal: Option<String>,
}

impl Forward {
    pub(super) fn port(channel: ChannelNumber, host: Vec<u8>, port: u16) -> Forward {
        Forward::new(Far::Port, Some(channel), &Request::Connect { host, port })
    }

    pub(super) fn agent(session: PartNumber, request: &Request) -> Forward {
        Forward::new(Far::Agent(session), None, request)
    }

    fn new(far: Far, channel: Option<ChannelNumber>, request: &Request) -> Forward {
        Forward {
            far,
            channel,
            request: request.bytes(),
            stage: Stage::Waiting,
            wire: None,
            forwarded: Forwarded::client(None),
            input: VecDeque::new(),
            output: VecDeque::new(),
            input_ended: false,
            output_ended: false,
            unheard: false,
            stream_ended: false,
            unwanted: false,
            parted: false,
            refusal: None,
        }
    }

    pub(super) fn far(&self) -> Far {
        self.far
    }

    pub(super) fn channel(&self) -> Option<ChannelNumber> {
        self.channel
    }

    /// What is awaited of its stream, if anything: else one that is closed would be ready all the time.
    pub(super) fn interest(&self) -> Option<PollFd<'_>> {
        let wire = self.wire.as_ref()?;
        let (reads, writes) = (self.reads(), !self.unheard && !wire.is_empty());
        (reads || writes).then(|| PollFd::ready_to(wire.as_fd(), reads, writes))
    }

    /// Whether it waits for its far end.
    pub(super) fn is_waiting(&self) -> bool {
        self.stage == Stage::Waiting
    }

    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// The reason why the peer refused it, if it did.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Whether the stream is to be read: not while much waits for `ssh`.
    fn reads(&self) -> bool {
        self.output.len() < OUTPUT_MAX
    }

    /// The stream is there, or cannot be.
    pub(super) fn opened(
        &mut self,
        opened: Result<LoginStream, Failure>,
        server: &mut SshServer,
    ) -> Result<(), SshError> {
        let doing = Failure::doing("use the stream");
        match opened.and_then(|it| Ok((Wire::new(it.stream).map_err(doing)?, it.rate_bits))) {
            Ok((mut wire, rate)) if self.stage == Stage::Waiting => {
                self.forwarded = Forwarded::client(rate);
                let request = std::mem::take(&mut self.request);
                // Of a stream that is lost, a refusal is still there to be read.
                let _ = wire.write(|into, _| into.extend_from_slice(&request));
                self.wire = Some(wire);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(failure) => self.end(OpenRefusal::ConnectFailed, &failure.to_string(), server),
        }
    }

    /// Bytes from `ssh`.
    pub(super) fn data(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
    }

    /// No more follow.
    pub(super) fn eof(&mut self) {
        self.input_ended = true;
    }

    /// Returns the bytes from `ssh` that wait for the stream.
    pub(super) fn waiting(&self) -> usize {
        self.input.len()
    }

    /// Notes that `ssh` has closed the channel, or is gone. Where it had said everything before, that goes on to the far end; else the stream
    /// breaks off, which the far end hears as a reset. Returns true if it goes on.
    pub(super) fn closed_by_ssh(&mut self) -> bool {
        self.unwanted = true;
        self.output.clear();
        if !self.input_ended || self.stage != Stage::Open {
            self.close();
        }
        self.stage == Stage::Open
    }

    /// It is over: `ssh` has refused it, or both ends have ended.
    pub(super) fn close(&mut self) {
        self.wire = None;
        self.stage = Stage::Over;
    }

    /// Bytes of the stream. Whether there were any.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> bool {
        if !self.reads() {
            return false;
        }
        let Some(wire) = &mut self.wire else { return false };
        match wire.read(buffer) {
            WireRead::Nothing => return false,
            WireRead::Bytes(length) => self.forwarded.received(&buffer[..length]),
            WireRead::End => {
                self.wire = None;
                self.stream_ended = true;
            }
        }
        true
    }

    /// Moves what can be moved, and says whether it was anything.
    pub(super) fn pump(&mut self, server: &mut SshServer) -> Result<bool, SshError> {
        if self.stage == Stage::Over {
            return Ok(false);
        }
        let mut moved = self.give_input(server)?;
        moved |= self.take_events(server)?;
        moved |= self.give_output(server)?;
        moved |= self.give_stream();
        if self.stream_ended && (self.output.is_empty() || self.stage == Stage::Waiting) {
            self.end(OpenRefusal::ConnectFailed, "the peer has closed the stream", server)?;
            moved = true;
        }
        Ok(moved)
    }

    fn give_stream(&mut self) -> bool {
        let Some(wire) = self.wire.as_mut().filter(|_| !self.unheard) else { return false };
        let forwarded = &mut self.forwarded;
        let Ok(moved) = wire.write(|into, room| forwarded.send(into, room)) else {
            // What it said before it was closed is there to be read.
            self.unheard = true;
            return true;
        };
        let all_said = self.input.is_empty() && !forwarded.wants_to_send() && wire.is_empty();
        if self.unwanted && all_said && !self.parted {
            self.parted = true;
            wire.end();
        }
        moved
    }

    fn give_input(&mut self, server: &mut SshServer) -> Result<bool, SshError> {
        let Some(channel) = self.channel.filter(|_| self.stage == Stage::Open) else { return Ok(false) };
        let mut moved = false;
        loop {
            let (front, _) = self.input.as_slices();
            let count = front.len().min(self.forwarded.room());
            let count = if count == 0 { 0 } else { self.forwarded.write(&front[..count]) };
            if count == 0 {
                break;
            }
            self.input.drain(..count);
            server.taken(channel, count)?;
            moved = true;
        }
        if self.input_ended && self.input.is_empty() {
            self.forwarded.end();
        }
        Ok(moved)
    }

    fn take_events(&mut self, server: &mut SshServer) -> Result<bool, SshError> {
        let mut moved = false;
        loop {
            let event = match self.forwarded.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(moved),
                Err(error) => {
                    let text = format!("the peer sent what this version does not understand: {error}");
                    self.end(OpenRefusal::ConnectFailed, &text, server)?;
                    return Ok(true);
                }
            };
            moved = true;
            match event {
                ForwardedEvent::Opened => {
                    self.stage = Stage::Open;
                    match self.channel {
                        Some(channel) => server.confirm(channel)?,
                        None => self.channel = server.open_agent()?,
                    }
                    if self.channel.is_none() {
                        self.close();
                    }
                }
                ForwardedEvent::Data(_) if self.unwanted => {}
                ForwardedEvent::Data(bytes) => self.output.extend(bytes),
                ForwardedEvent::End => self.output_ended = true,
                ForwardedEvent::Refused(Refusal { reason, text }) => {
                    let why = match reason {
                        RefusedReason::NotAllowed => OpenRefusal::Prohibited,
                        RefusedReason::TooMany | RefusedReason::Busy => OpenRefusal::Shortage,
                        _ => OpenRefusal::ConnectFailed,
                    };
                    self.end(why, &text, server)?;
                    self.refusal = Some(text);
                    return Ok(true);
                }
            }
        }
    }

    fn give_output(&mut self, server: &mut SshServer) -> Result<bool, SshError> {
        let Some(channel) = self.channel.filter(|_| self.stage == Stage::Open) else { return Ok(false) };
        let mut moved = false;
        loop {
            let (front, _) = self.output.as_slices();
            let count = if front.is_empty() { 0 } else { server.data(channel, OutputStream::Out, front)? };
            if count == 0 {
                break;
            }
            self.output.drain(..count);
            moved = true;
        }
        if self.output_ended && self.output.is_empty() {
            // Said once; the server knows.
            server.eof(channel)?;
        }
        Ok(moved)
    }

    /// Ends it at both ends.
    fn end(&mut self, why: OpenRefusal, text: &str, server: &mut SshServer) -> Result<(), SshError> {
        match (self.channel, self.stage) {
            (Some(channel), Stage::Waiting) => server.refuse(channel, why, text)?,
            (Some(channel), Stage::Open) => server.close(channel)?,
            _ => {}
        }
        self.close();
        Ok(())
    }
}
