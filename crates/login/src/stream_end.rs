//! One end of a stream: messages to bytes and back.

use crate::history::{Expander, Press};
use crate::log::{CONTROL, Control, Piece};
use crate::message::{Channel, LoginMessage, MAX_SMALL, MAX_UNIT, MessageFramer};

/// Input that is typed, with what a terminal sends for a key or a few of them: more is pasted.
pub(crate) const TYPED: usize = 4 * MAX_SMALL;
/// Bytes of a unit at least, if there are as many: less is mostly heads and flushes of the codec.
const LEAST_UNIT: usize = 1024;
/// The share with which the ratio follows that of a unit.
const RATIO_SHARE: f64 = 0.25;

/// One end of a stream.
#[derive(Debug)]
pub(crate) struct StreamEnd {
    pub(crate) framer: MessageFramer,
    pub(crate) expander: Expander,
    press: Press,
    /// Messages that were made, up to `given` already with the stream.
    made: Vec<u8>,
    given: usize,
    /// Bytes before compression for one in the stream, of late.
    ratio: f64,
}

impl StreamEnd {
    pub(crate) fn new(rate_bits: Option<u64>) -> StreamEnd {
        StreamEnd {
            framer: MessageFramer::new(),
            expander: Expander::default(),
            press: Press::new(rate_bits),
            made: Vec::new(),
            given: 0,
            ratio: 2.0,
        }
    }

    /// Another stream: nothing of this one counts.
    pub(crate) fn restart(&mut self) {
        self.framer = MessageFramer::new();
        self.expander.restart();
        self.press.restart();
        self.made.clear();
        self.given = 0;
    }

    pub(crate) fn set_rate(&mut self, bits: Option<f64>) {
        if let Some(bits) = bits {
            self.press.set_rate(bits);
        }
    }

    /// Makes a message; says how many bytes it has.
    pub(crate) fn put(&mut self, message: &LoginMessage<'_>, taken: u64) -> usize {
        let before = self.made.len();
        message.put(taken, &mut self.made);
        self.made.len() - before
    }

    /// Makes a message of a piece, or of its front if `room` bytes would hold no more. `typed`: input is a person's. Says what
    /// it costs, and how many bytes it has.
    pub(crate) fn put_piece(
        &mut self,
        piece: &Piece<'_>,
        room: usize,
        typed: bool,
        taken: u64,
    ) -> (u64, usize) {
        match piece {
            Piece::Control(control) => (CONTROL, self.put(&message_of(control), taken)),
            Piece::Bytes { bytes, .. } if is_small(piece, typed) => {
                let now = &bytes[..bytes.len().min(MAX_SMALL)];
                (now.len() as u64, self.put(&LoginMessage::Small(now), taken))
            }
            Piece::Bytes { channel, bytes, whole, .. } => {
                let most = if *whole { MAX_UNIT } else { self.unit_len(room) };
                self.put_unit(*channel, &bytes[..bytes.len().min(most)], taken)
            }
        }
    }

    pub(crate) fn put_unit(&mut self, channel: Channel, raw: &[u8], taken: u64) -> (u64, usize) {
        let before = self.made.len();
        let unit = self.press.press(raw);
        LoginMessage::Unit(channel, unit).put(taken, &mut self.made);
        let wire = self.made.len() - before;
        self.ratio += (raw.len() as f64 / wire as f64 - self.ratio) * RATIO_SHARE;
        (raw.len() as u64, wire)
    }

    /// Bytes of a unit that will about fill `room`.
    fn unit_len(&self, room: usize) -> usize {
        ((room as f64 * self.ratio) as usize).clamp(LEAST_UNIT, MAX_UNIT)
    }

    /// Moves what was made to the stream, as much as there is room for; says how much room is left.
    pub(crate) fn give(&mut self, into: &mut Vec<u8>, room: usize) -> usize {
        let now = room.min(self.made.len() - self.given);
        into.extend_from_slice(&self.made[self.given..self.given + now]);
        self.given += now;
        if self.given == self.made.len() {
            self.made.clear();
            self.given = 0;
        }
        room - now
    }

    /// Whether something was made that the stream does not have.
    pub(crate) fn has_more(&self) -> bool {
        self.given < self.made.len()
    }
}

/// Whether a piece goes in messages of one size: what a person types, and its echo.
pub(crate) fn is_small(piece: &Piece<'_>, typed: bool) -> bool {
    match piece {
        Piece::Bytes { channel: Channel::Input, bytes, .. } => typed && bytes.len() <= TYPED,
        Piece::Bytes { channel: Channel::Terminal, bytes, alone, .. } => *alone || bytes.len() <= MAX_SMALL,
        _ => false,
    }
}

fn message_of(control: &Control) -> LoginMessage<'static> {
    match control {
        Control::End(channel) => LoginMessage::End(*channel),
        Control::Resize(size) => LoginMessage::Resize(*size),
        Control::Signal(signal) => LoginMessage::Signal(*signal),
        Control::Detach => LoginMessage::Detach,
        Control::HangUp => LoginMessage::HangUp,
        Control::Modes(modes) => LoginMessage::Modes(*modes),
        Control::Exited(exit) => LoginMessage::Exited(exit.clone()),
    }
}
