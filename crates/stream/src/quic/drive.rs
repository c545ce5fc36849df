//! How streams and the key manager are driven together: connections, their events, and what they say to their endpoint.

use quinn_proto::{Dir, Event, StreamEvent as QuicEvent};
use strait_clock::Time;
use strait_keying::{Control, LentEvent};

use super::{StreamEvent, Streams};

impl Streams {
    /// Passes on what the key manager has for streams and what they have for it, until neither has more to say.
    pub fn drive(&mut self, control: &mut Control, now: Time) {
        loop {
            let mut quiet = true;
            while let Some(event) = control.poll_lent() {
                quiet = false;
                self.take(event, now);
            }
            while let Some((handle, event)) = self.pool.out.to_endpoint.pop_front() {
                quiet = false;
                let drained = event.is_drained();
                let answer = control.lent_event(handle, event);
                if drained {
                    self.pool.live.remove(&handle.0);
                } else if let (Some(answer), Some(connection)) = (answer, self.pool.live.get_mut(&handle.0)) {
                    connection.quic.handle_event(answer);
                    self.pool.out.stirred.insert(handle.0);
                }
            }
            while let Some(peer) = self.pool.out.lost_sight.pop_first() {
                quiet = false;
                control.seek(peer, now);
            }
            for (peer, process) in self.gone() {
                quiet = false;
                control.stopped(peer, process, now);
            }
            for peer in self.wanted(now) {
                quiet = false;
                control.connect_streams(peer, now);
            }
            if quiet {
                return;
            }
        }
    }

    fn take(&mut self, event: LentEvent, now: Time) {
        match event {
            LentEvent::Connected(lent) => self.attach(*lent, now),
            LentEvent::Event(handle, event) => {
                if let Some(connection) = self.pool.live.get_mut(&handle.0) {
                    connection.quic.handle_event(event);
                    self.pool.out.stirred.insert(handle.0);
                    self.hear(handle.0, now);
                }
            }
            LentEvent::Failed(peer, why) => self.not_connected(peer, why),
            LentEvent::Restarted(peer, place) => self.lose_process(peer, place, now),
            LentEvent::Stopped(peer, process) => self.note_ended(peer, process),
        }
    }

    /// Takes what a connection has to say.
    pub(super) fn hear(&mut self, handle: usize, now: Time) {
        let Some(connection) = self.pool.live.get_mut(&handle) else { return };
        while let Some(event) = connection.quic.poll_endpoint_events() {
            self.pool.out.to_endpoint.push_back((connection.handle, event));
        }
        connection.note_due(self.pool.epoch);
        while let Some(event) = self.pool.live.get_mut(&handle).and_then(|it| it.quic.poll()) {
            self.interpret(handle, event, now);
        }
    }

    fn interpret(&mut self, handle: usize, event: Event, now: Time) {
        match event {
            Event::Stream(QuicEvent::Opened { dir: Dir::Bi }) => self.pool.accept(handle, now),
            Event::Stream(QuicEvent::Available { dir: Dir::Bi }) => {
                if let Some(peer) = self.pool.live.get(&handle).map(|it| it.peer) {
                    self.open_waiting(peer, now);
                }
            }
            Event::Stream(QuicEvent::Readable { id }) => self.pool.tell(handle, id, StreamEvent::Readable),
            Event::Stream(QuicEvent::Writable { id }) => {
                if let Some(connection) = self.pool.live.get_mut(&handle) {
                    connection.unstick(id);
                    self.pool.out.stirred.insert(handle);
                }
            }
            Event::Stream(QuicEvent::Finished { id }) => {
                self.pool.said_all(handle, id, StreamEvent::Delivered)
            }
            Event::Stream(QuicEvent::Stopped { id, .. }) => self.pool.given_up(handle, id),
            Event::ConnectionLost { reason } => {
                let why = reason.to_string();
                self.pool.lose_streams(handle, &why);
                self.note_lost(handle, why);
            }
            _ => {}
        }
    }
}
