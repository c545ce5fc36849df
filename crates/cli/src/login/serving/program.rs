//! A session's program: its terminal, or its pipes. `start` has how it comes to be.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;

use strait_login::{OutputKind, SessionSignal, TerminalModes, WindowSize};
use strait_node::login::{Pty, PtySize, signal_group};
use strait_node::poll::PollFd;

pub(super) use start::from_monitor;

mod start;
#[cfg(test)]
mod tests;

/// A program that runs.
pub(super) struct RunningProgram {
    ends: Ends,
    /// Its process, the first of its group and session.
    process: i32,
    /// Input that it has not taken.
    waiting: Vec<u8>,
    written: usize,
    input: Input,
    modes: Option<TerminalModes>,
    /// What the list of sessions says of it.
    pub(super) what: String,
}

enum Ends {
    Terminal { pty: Pty, ended: bool },
    Pipes { input: Option<PipeWriter>, out: Option<PipeReader>, errors: Option<PipeReader> },
}

/// Whether input may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    /// What waits is the last.
    Ending,
    /// The program takes no more, or was told the end.
    Closed,
}

/// What was read of a program.
pub(super) enum Output {
    Bytes(OutputKind, usize),
    Ended(OutputKind),
}

impl RunningProgram {
    pub(super) const fn has_terminal(&self) -> bool {
        matches!(self.ends, Ends::Terminal { .. })
    }

    /// Whether it takes input.
    pub(super) fn takes_input(&self) -> bool {
        self.input != Input::Closed
    }

    /// Input for it, in order.
    pub(super) fn input(&mut self, bytes: &[u8]) {
        if self.input == Input::Open {
            // A program that is slower than the link always leaves some: what it has is not kept with it.
            self.waiting.drain(..self.written);
            self.written = 0;
            self.waiting.extend_from_slice(bytes);
        }
    }

    /// No more input follows.
    pub(super) fn end_input(&mut self) {
        if self.input != Input::Open {
            return;
        }
        self.input = Input::Ending;
        if let Ends::Terminal { pty, .. } = &self.ends {
            // As a person types it; a terminal has no other end.
            self.waiting.extend(pty.end_of_file());
        }
    }

    /// Writes input that waits, as much as it takes: how much, and whether it takes no more.
    pub(super) fn write(&mut self) -> (usize, bool) {
        // A terminal that no process has would be ready all the time and take nothing.
        if matches!(self.ends, Ends::Terminal { ended: true, .. }) && self.takes_input() {
            self.close_input();
            return (0, true);
        }
        let mut total = 0;
        while let Some(rest) = self.waiting.get(self.written..).filter(|rest| !rest.is_empty()) {
            let result = match &mut self.ends {
                Ends::Terminal { pty, .. } => Write::write(&mut &*pty, rest),
                Ends::Pipes { input: Some(pipe), .. } => pipe.write(rest),
                Ends::Pipes { input: None, .. } => Err(io::ErrorKind::BrokenPipe.into()),
            };
            match result {
                Ok(length) => {
                    self.written += length;
                    total += length;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return (total, false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.close_input();
                    return (total, true);
                }
            }
        }
        self.waiting.clear();
        self.written = 0;
        if self.input == Input::Ending {
            self.close_input();
        }
        (total, false)
    }

    fn close_input(&mut self) {
        self.input = Input::Closed;
        self.waiting.clear();
        self.written = 0;
        if let Ends::Pipes { input, .. } = &mut self.ends {
            *input = None;
        }
    }

    /// Reads output, if there is any, from one of its ends: errors first, which are short.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Option<Output> {
        match &mut self.ends {
            Ends::Terminal { ended: true, .. } => None,
            Ends::Terminal { pty, ended } => match Read::read(&mut &*pty, buffer) {
                Ok(length) if length > 0 => Some(Output::Bytes(OutputKind::Terminal, length)),
                Err(error) if is_nothing(&error) => None,
                // EIO: no process has the terminal any more.
                _ => {
                    *ended = true;
                    Some(Output::Ended(OutputKind::Terminal))
                }
            },
            Ends::Pipes { out, errors, .. } => {
                for (pipe, kind) in [(errors, OutputKind::Err), (out, OutputKind::Out)] {
                    let Some(open) = pipe else { continue };
                    match open.read(buffer) {
                        Ok(length) if length > 0 => return Some(Output::Bytes(kind, length)),
                        Err(error) if is_nothing(&error) => {}
                        _ => {
                            *pipe = None;
                            return Some(Output::Ended(kind));
                        }
                    }
                }
                None
            }
        }
    }

    /// Gives up what output there may be: other processes have the terminal, and the program has ended.
    pub(super) fn give_up_output(&mut self) -> Option<OutputKind> {
        match &mut self.ends {
            Ends::Terminal { ended, .. } => (!std::mem::replace(ended, true)).then_some(OutputKind::Terminal),
            Ends::Pipes { .. } => None,
        }
    }

    /// Whether all output was read.
    pub(super) fn output_ended(&self) -> bool {
        match &self.ends {
            Ends::Terminal { ended, .. } => *ended,
            Ends::Pipes { out, errors, .. } => out.is_none() && errors.is_none(),
        }
    }

    /// What is awaited of it: output if it is wanted, and room if input waits.
    pub(super) fn interest(&self, output: bool) -> [PollFd<'_>; 3] {
        let input = !self.waiting.is_empty();
        match &self.ends {
            // A terminal that is not waited for would say that it is hung up, all the time.
            Ends::Terminal { pty, ended } if output && !ended || input => {
                let one = PollFd::ready_to(pty.as_fd(), output && !ended, input);
                [one, PollFd::ignored(), PollFd::ignored()]
            }
            Ends::Terminal { .. } => [PollFd::ignored(), PollFd::ignored(), PollFd::ignored()],
            Ends::Pipes { input: pipe, out, errors } => [
                // Without input, one whose reader is gone would be ready all the time.
                of(pipe.as_ref().filter(|_| input), |pipe| PollFd::writable(pipe.as_fd())),
                of(out.as_ref().filter(|_| output), |pipe| PollFd::readable(pipe.as_fd())),
                of(errors.as_ref().filter(|_| output), |pipe| PollFd::readable(pipe.as_fd())),
            ],
        }
    }

    /// How its terminal treats input, if that is another way than before.
    pub(super) fn new_modes(&mut self) -> Option<TerminalModes> {
        let Ends::Terminal { pty, .. } = &self.ends else { return None };
        let (echo, canonical) = pty.echo_and_canonical().ok()?;
        let modes = TerminalModes { echo, canonical };
        (self.modes.replace(modes) != Some(modes)).then_some(modes)
    }

    pub(super) fn resize(&self, window: WindowSize) {
        if let Ends::Terminal { pty, .. } = &self.ends
            && let Err(error) = pty.resize(size(window))
        {
            tracing::debug!("a window's size: {error}");
        }
    }

    /// Sends a signal to the programs in front, or to all of the group that was started.
    pub(super) fn signal(&self, signal: SessionSignal) {
        let number = signal_number(signal);
        let sent = match &self.ends {
            Ends::Terminal { pty, .. } => pty.signal(number),
            Ends::Pipes { .. } => signal_group(self.process, number),
        };
        if let Err(error) = sent {
            tracing::debug!("signal {}: {error}", signal.name());
        }
    }

    /// Ends it as a telephone line that is hung up does. The terminal goes with this process.
    pub(super) fn hang_up(&self) {
        for signal in [HUP, CONT] {
            let _ = signal_group(self.process, signal);
        }
    }
}

fn of<'a, T>(end: Option<&'a T>, interest: impl FnOnce(&'a T) -> PollFd<'a>) -> PollFd<'a> {
    end.map_or_else(PollFd::ignored, interest)
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn size(window: WindowSize) -> PtySize {
    let WindowSize { columns, rows, width, height } = window.clamped();
    PtySize { columns, rows, width, height }
}

/// Numbers of signals on every architecture of Linux that this runs on (signal(7)).
const HUP: i32 = 1;
const CONT: i32 = 18;

fn signal_number(signal: SessionSignal) -> i32 {
    match signal {
        SessionSignal::Hup => HUP,
        SessionSignal::Int => 2,
        SessionSignal::Quit => 3,
        SessionSignal::Abrt => 6,
        SessionSignal::Kill => 9,
        SessionSignal::Usr1 => 10,
        SessionSignal::Usr2 => 12,
        SessionSignal::Pipe => 13,
        SessionSignal::Alrm => 14,
        SessionSignal::Term => 15,
        SessionSignal::Cont => CONT,
        SessionSignal::Tstp => 20,
    }
}
