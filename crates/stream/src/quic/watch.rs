//! Whether a connection lives: when it is idle, silent, or given up.
//!
//! ```text
//! open streams, all answered     -> nothing to do
//! something said, 5 s no answer  -> silent: a datagram every 5 s finds out whether the path carries again; every 2 s for streams that
//!                                   go first
//! silent for 15 s                -> a handshake of the key manager looks for the peer
//! silent, and the peer is heard  -> it has lost the connection, or moved: given up if that stays so for 3 s
//! the peer says that it ends     -> forgotten without a word: a datagram for it would only begin a handshake in vain
//! another connection or session  -> asked at once: the peer may have been restarted; no stream begins on it until it has answered,
//!                                   and it is given up if it says nothing for 3 s; at once if the session says that another process
//!                                   is in its place
//! no session 30 s after it began  -> given up: the peer takes a few datagrams without one, and then no more
//! no streams for a minute        -> forgotten without a word; the end that began it goes first
//! ```

use core::time::Duration;

use quinn_proto::{Connection, FrameStats};
use strait_clock::Time;
use strait_ipsec::{PeerId, StreamLink};
use strait_keying::Role;

use super::connection::LiveConnection;
use super::{OPENING_MAX, Streams};

/// How often connections are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long something may be unanswered: several of QUIC's own probes on a path of 600 ms (RFC 9002 section 6.2).
const SILENT: Duration = Duration::from_secs(5);
/// How often a silent path is asked for a sign of life: 0.2 % of 1 Mbit/s.
const ASK: Duration = Duration::from_secs(5);
/// The same where a person waits, who is to see an answer within 3 s of the path's return: looked at each second, every 2 s.
const ASK_FIRST: Duration = Duration::from_millis(1500);
/// How long nothing may be heard while streams are open, before the end that only reads asks, too.
const UNHEARD: Duration = Duration::from_secs(30);
/// The same where all streams are of persons, who may type nothing for hours: soon enough that QUIC does not give the connection up
/// after 15 minutes (RFC 9000 section 10.1).
const UNHEARD_FIRST: Duration = Duration::from_secs(600);
/// How long a path may be silent before a session is to find the peer, and how often: it may be elsewhere, and a handshake costs as
/// much as a second of 50 kbit/s.
const SEARCH: Duration = Duration::from_secs(15);
/// How long the connection of a peer that is heard may stay silent.
const HEARD: Duration = Duration::from_secs(3);
/// The time within which the first session comes that was begun with the connection: that of an attempt.
const BESIDE: Duration = Duration::from_secs(10);
/// How long a connection without streams is kept: the end that began it opens streams on it for so long, the other as long again,
/// so that hardly any is opened that the other end has forgotten.
const IDLE: Duration = Duration::from_secs(60);
/// What is known of a connection's life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    opened: Time,
    used_at: Time,
    renewed_at: Time,
    looked_at: Time,
    /// Frames that only a living peer sends, and those that one answers.
    heard: u64,
    heard_at: Time,
    said: u64,
    /// Since when something is unanswered.
    unanswered: Option<Time>,
    silent: bool,
    asked_at: Time,
    searched_at: Option<Time>,
    /// When the peer was heard beside a silent connection, and what had come from it before.
    signs: (Option<Time>, u64),
    /// Since when the peer may have lost it, if nothing was heard on it since.
    doubted_at: Option<Time>,
    /// Sessions with the peer when it was looked at.
    sessions: u64,
}

impl Watch {
    pub(super) const fn new(now: Time) -> Watch {
        Watch {
            opened: now,
            used_at: now,
            renewed_at: now,
            looked_at: now,
            heard: 0,
            heard_at: now,
            said: 0,
            unanswered: None,
            silent: false,
            asked_at: now,
            searched_at: None,
            signs: (None, 0),
            doubted_at: None,
            sessions: 0,
        }
    }

    pub(super) const fn opened(&self) -> Time {
        self.opened
    }

    /// It begins within the newest session of this link.
    pub(super) fn begins_in(&mut self, link: &StreamLink) {
        self.sessions = link.sessions();
    }

    /// True if it is older than an attempt: one that is not may have begun beside the newest session, with the same process.
    pub(super) fn is_older(&self, now: Time) -> bool {
        self.opened + BESIDE <= now
    }

    /// True if another session was agreed since this was called last; `sessions` is how many there were so far. The first may be agreed
    /// beside the connection, in no more time than one attempt takes.
    fn is_older_than(&mut self, sessions: u64, now: Time) -> bool {
        let before = core::mem::replace(&mut self.sessions, sessions);
        before != sessions && (before != 0 || self.is_older(now))
    }

    /// A datagram is sent to find out whether the path carries.
    pub(super) const fn asked(&mut self, now: Time) {
        self.asked_at = now;
    }

    pub(super) const fn used(&mut self, now: Time) {
        self.used_at = now;
    }

    /// Whether it takes new streams.
    pub(super) fn is_fresh(&self, lifetime: Duration, now: Time) -> bool {
        now < self.opened + lifetime
    }

    pub(super) const fn is_silent(&self) -> bool {
        self.silent
    }

    /// True if it is silent, and nothing was heard since that was looked at.
    pub(super) fn is_still_silent(&self, quic: &Connection) -> bool {
        self.silent && heard(quic) == self.heard
    }

    /// Whether the peer may have lost it: nothing was heard since that was asked.
    pub(super) fn is_doubted(&self, quic: &Connection) -> bool {
        self.doubted_at.is_some() && heard(quic) == self.heard
    }

    /// Looks at what was said and heard; nothing that waits in the queue here is a sign of silence.
    fn look(&mut self, quic: &Connection, queued: bool, now: Time) {
        self.looked_at = now;
        let (heard, said) = (heard(quic), frames(&quic.stats().frame_tx));
        if heard != self.heard {
            self.heard_at = now;
            self.doubted_at = None;
        }
        if heard != self.heard || queued {
            (self.heard, self.said, self.unanswered) = (heard, said, None);
        } else if said != self.said {
            self.unanswered.get_or_insert(now);
        }
        let most = SILENT.max(8 * quic.rtt());
        self.silent = self.unanswered.is_some_and(|since| since + most <= now);
        if !self.silent {
            self.signs.0 = None;
        }
    }

    /// Whether a session is to find the peer.
    fn searches(&mut self, now: Time) -> bool {
        let silent = self.unanswered.is_some_and(|since| since + SEARCH <= now);
        let searches = silent && self.searched_at.is_none_or(|at| at + 4 * SEARCH <= now);
        if searches {
            self.searched_at = Some(now);
        }
        searches
    }

    /// Whether the peer lives and this connection does not; `came` counts what comes from it beside.
    fn is_dead(&mut self, came: u64, round_trip: Duration, now: Time) -> bool {
        let (since, before) = &mut self.signs;
        let sign = core::mem::replace(before, came) != came;
        if self.silent && sign {
            since.get_or_insert(now);
        }
        let since = since.or(self.doubted_at);
        since.is_some_and(|since| since + HEARD.max(4 * round_trip) <= now)
    }
}

/// Frames that only a living peer sends.
fn heard(quic: &Connection) -> u64 {
    let stats = quic.stats();
    frames(&stats.frame_rx) + stats.frame_rx.acks
}

/// Frames that a peer answers. QUIC's own probes are IMMEDIATE_ACK, as both ends know that (draft-ietf-quic-ack-frequency-11).
const fn frames(of: &FrameStats) -> u64 {
    of.stream + of.ping + of.max_data + of.max_stream_data + of.immediate_ack
}

impl LiveConnection {
    /// When it is to be looked at.
    pub(super) fn watched_at(&self) -> Time {
        if self.is_used() { self.watch.looked_at + LOOK } else { self.watch.used_at + self.idle() }
    }

    fn idle(&self) -> Duration {
        if self.role == Role::Initiator { IDLE } else { 2 * IDLE }
    }

    fn is_idle(&self, now: Time) -> bool {
        !self.is_used() && self.watch.used_at + self.idle() <= now
    }
}

impl Streams {
    /// Looks at the connections that are due.
    pub(super) fn watch(&mut self, now: Time) {
        let due = self.pool.live.iter().filter(|(_, it)| it.watched_at() <= now);
        let due: Vec<usize> = due.map(|(handle, _)| *handle).collect();
        for handle in due {
            self.look(handle, now);
        }
    }

    fn look(&mut self, handle: usize, now: Time) {
        let Some(connection) = self.pool.live.get_mut(&handle) else { return };
        let peer = self.peers.get(&connection.peer).filter(|_| !connection.is_idle(now));
        let Some(peer) = peer else { return self.pool.forget(handle, "the peer was removed") };
        let pause = if connection.is_pressing() { ASK_FIRST } else { ASK };
        let unheard = if connection.is_all_pressing() { UNHEARD_FIRST } else { UNHEARD };
        let LiveConnection { quic, watch, .. } = connection;
        let was_silent = watch.silent;
        watch.look(quic, peer.queued() > 0, now);
        if was_silent && !watch.silent {
            // What is heard first may acknowledge what was sent before the silence: to QUIC that is a round trip of minutes.
            quic.path_changed(self.pool.epoch.instant(now));
            return self.pool.ask(handle, now);
        }
        if watch.is_older_than(peer.counters.stream.sessions(), now) {
            return self.doubt(handle, now);
        }
        if peer.counters.stream.sessions() == 0 && watch.opened + OPENING_MAX <= now {
            return self.give_up(handle, "there was no session in time", now);
        }
        if watch.is_dead(peer.counters.in_datagrams.get(), quic.rtt(), now) {
            return self.give_up(handle, "the path was lost", now);
        }
        if watch.renewed_at + self.lifetime <= now {
            watch.renewed_at = now;
            quic.force_key_update();
            self.pool.out.stirred.insert(handle);
        }
        let moved =
            connection.role == Role::Initiator && peer.counters.endpoint.get() != Some(quic.remote_address());
        if watch.silent && moved {
            return self.give_up(handle, "the peer moved", now);
        }
        if watch.searches(now) {
            self.pool.out.lost_sight.insert(connection.peer);
        }
        let asks = watch.silent || watch.heard_at + unheard <= now;
        if asks && watch.asked_at + pause <= now {
            self.pool.ask(handle, now);
        }
    }

    /// Asks for a sign of life of the peer's connections that are older than its session: a stream that begins now must not begin
    /// on one that the peer has lost.
    pub(super) fn doubt_older(&mut self, peer: PeerId, sessions: u64, now: Time) {
        for handle in self.pool.handles_of(peer) {
            let connection = self.pool.live.get_mut(&handle);
            if connection.is_some_and(|connection| connection.watch.is_older_than(sessions, now)) {
                self.doubt(handle, now);
            }
        }
    }

    /// Asks for a sign of life of a connection that the peer may have lost: an end that only reads would not notice for long, and
    /// one that waits in an idle tunnel never hears of the peer in another way.
    pub(super) fn doubt(&mut self, handle: usize, now: Time) {
        let Some(LiveConnection { quic, watch, .. }) = self.pool.live.get_mut(&handle) else { return };
        // What came before does not count.
        watch.look(quic, true, now);
        watch.doubted_at = Some(now);
        self.pool.ask(handle, now);
    }

    /// Gives a connection up: its streams are lost, and a transfer goes on over another.
    pub(super) fn give_up(&mut self, handle: usize, why: &str, now: Time) {
        self.pool.close(handle, why, now);
        self.hear(handle, now);
    }
}
