//! What a server sends, and when.

use strait_clock::Time;

use super::{Greeting, LoginServer};
use crate::log::Piece;
use crate::message::{Channel, LoginMessage};
use crate::stream_end::is_small;

impl LoginServer {
    /// Appends at most `room` bytes for the stream. What does not fit follows with the next call.
    pub fn send(&mut self, into: &mut Vec<u8>, room: usize, now: Time) {
        self.now = now;
        if !self.attached {
            return;
        }
        self.stream.set_rate(self.pace.wire_rate());
        if self.greeting.is_none() && self.catches_up_at().is_some_and(|at| at <= now) {
            self.catch_up((0, now));
        }
        let mut room = room;
        loop {
            room = self.stream.give(into, room);
            if room == 0 || self.stream.has_more() || !self.make(room) {
                return;
            }
        }
    }

    /// Makes the next message, if there is one.
    fn make(&mut self, room: usize) -> bool {
        if let Some(greeting) = self.greeting.take() {
            let message = self.greet(greeting);
            self.stream.put(&message, self.incoming.taken());
            return true;
        }
        self.go_on_catching_up();
        if self.make_piece(room) {
            return true;
        }
        if self.incoming.due(self.now) {
            let taken = self.incoming.tell(self.now);
            self.stream.put(&LoginMessage::Small(&[]), taken);
            return true;
        }
        false
    }

    fn make_piece(&mut self, room: usize) -> bool {
        let Some(piece) = self.log.peek() else { return false };
        let terminal = self.display.is_some();
        let urgent = self.is_urgent(&piece);
        let room = room.min(budget(&piece, terminal && !urgent, &mut self.pace));
        if room == 0 {
            return false;
        }
        let room = if terminal { room.min(self.pace.message()) } else { room };
        let taken = self.incoming.tell(self.now);
        let (cost, wire) = self.stream.put_piece(&piece, room, terminal, taken);
        let sent = self.log.sent() + cost;
        if let (Piece::Bytes { channel: Channel::Terminal, bytes, .. }, Some(display)) =
            (&piece, &mut self.display)
        {
            display.sent(&bytes[..cost as usize], sent);
        }
        self.log.advance(cost);
        self.pace.sent(sent, wire, self.now);
        true
    }

    fn greet(&self, greeting: Greeting) -> LoginMessage<'static> {
        let account = self.account.clone();
        match greeting {
            Greeting::Started => LoginMessage::Started { account },
            Greeting::Resumed => LoginMessage::Resumed {
                account,
                client: self.client,
                input: self.incoming.received(),
                output: self.log.sent(),
            },
        }
    }

    /// Whether [`LoginServer::send`] may have anything.
    #[must_use]
    pub fn wants_to_send(&self, now: Time) -> bool {
        let terminal = self.display.is_some();
        let goes = |piece: &Piece<'_>| {
            !terminal || self.pace.has_budget() || !is_bulk(piece, terminal) || self.is_urgent(piece)
        };
        let piece = self.log.peek().is_some_and(|piece| goes(&piece));
        self.attached
            && (piece
                || self.catches_up_now(now)
                || self.greeting.is_some()
                || self.stream.has_more()
                || self.incoming.due(now))
    }
}

/// What a window holds back: what a person typed, and what is no output, goes at once.
fn is_bulk(piece: &Piece<'_>, typed: bool) -> bool {
    matches!(piece, Piece::Bytes { .. }) && !is_small(piece, typed)
}

/// Bytes that a piece may take in the stream.
fn budget(piece: &Piece<'_>, held_back: bool, pace: &mut crate::pace::Pace) -> usize {
    let budget = pace.budget();
    // A command's output fills what the stream takes: no person waits behind it.
    if held_back && is_bulk(piece, true) { budget } else { usize::MAX }
}
