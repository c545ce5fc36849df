//! A client and a server with a stream between them, in virtual time. Time goes on only to what an end or a link has asked for, so that
//! a wake-up that is forgotten is a stall.

use core::time::Duration;

use strait_clock::{Random, Time};
use strait_login::{
    ClientEvent, ClientOptions, LoginClient, LoginServer, Refusal, RefusedReason, Request, RequestReader,
    ServerOptions, SessionNumber, SessionRequest, Ticket, refusal,
};

use crate::link::{Link, LinkShape};
use crate::program::Program;

/// What a client's user does.
pub(crate) trait User {
    fn event(&mut self, event: &ClientEvent, client: &mut LoginClient, now: Time);
    /// Does what it can.
    fn run(&mut self, client: &mut LoginClient, now: Time);
    /// When it does something by itself.
    fn next(&self) -> Option<Time> {
        None
    }
}

/// How the caller of both ends behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habits {
    /// Bytes that it gives room for at once at most.
    pub(crate) room: usize,
    /// Bytes of output that it writes at once at most; the rest it writes a moment later.
    pub(crate) taken: usize,
}

pub(crate) const USUAL: Habits = Habits { room: 64 << 10, taken: usize::MAX };

pub(crate) struct World<P, U> {
    pub(crate) client: LoginClient,
    pub(crate) server: LoginServer,
    pub(crate) program: P,
    pub(crate) user: U,
    pub(crate) up: Link,
    pub(crate) down: Link,
    pub(crate) now: Time,
    /// How often the server was asked to begin the session, and did.
    pub(crate) begun: u32,
    /// Whether the next request for a session comes behind one that was late.
    pub(crate) late: bool,
    reader: Option<RequestReader>,
    habits: Habits,
    random: Random,
    /// Output that the client has and that is not written yet.
    unwritten: usize,
    /// How often the stream was lost, and when it is there again.
    pub(crate) away_until: Option<Time>,
    closed: bool,
}

impl<P: Program, U: User> World<P, U> {
    pub(crate) fn new(
        request: SessionRequest,
        rate_bits: Option<u64>,
        (program, user): (P, U),
        (up, down): (LinkShape, LinkShape),
        habits: Habits,
        seed: u64,
    ) -> World<P, U> {
        let ticket = Ticket::new(SessionNumber(seed), [9; 32]);
        let terminal = request.terminal.as_ref().map(|terminal| terminal.size);
        let account = "alice".to_owned();
        let options = ServerOptions { ticket: ticket.clone(), account, terminal, rate_bits };
        World {
            client: LoginClient::start(ticket, request, ClientOptions { rate_bits }),
            begun: 0,
            late: false,
            server: LoginServer::new(options, Time::ZERO),
            program,
            user,
            up: Link::new(up, seed),
            down: Link::new(down, seed ^ 1),
            now: Time::ZERO,
            reader: Some(RequestReader::new()),
            habits,
            random: Random::new(seed ^ 2),
            unwritten: 0,
            away_until: None,
            closed: false,
        }
    }

    /// Goes on until both ends have finished.
    pub(crate) fn finish(&mut self) {
        self.run_until(|world| world.client.finished() && world.server.finished());
    }

    /// Goes on until this holds.
    pub(crate) fn run_until(&mut self, mut done: impl FnMut(&mut World<P, U>) -> bool) {
        let mut idle = 0;
        loop {
            self.work();
            if done(self) {
                return;
            }
            let next = self.next_at().expect("nothing more will happen: the session stalls");
            idle = if next > self.now { 0 } else { idle + 1 };
            assert!(idle < 100_000, "the ends ask to be called again and again at {:?}", self.now);
            self.now = self.now.max(next);
        }
    }

    /// Everything that can be done now.
    fn work(&mut self) {
        let now = self.now;
        if self.away_until.is_some_and(|until| until <= now) {
            self.away_until = None;
            self.client.reconnect(now);
            self.reader = Some(RequestReader::new());
        }
        while let Some(bytes) = self.up.arrived(now) {
            self.at_server(&bytes);
        }
        while let Some(bytes) = self.down.arrived(now) {
            self.client.received(&bytes, now).expect("the server's bytes are right");
        }
        self.at_program();
        self.at_user();
        if self.away_until.is_none() && !self.closed {
            let mut bytes = Vec::new();
            self.client.send(&mut bytes, self.habits.room.min(self.up.room()), now);
            self.up.write(&bytes, now);
            bytes.clear();
            self.server.send(&mut bytes, self.habits.room.min(self.down.room()), now);
            self.down.write(&bytes, now);
        }
    }

    fn at_server(&mut self, bytes: &[u8]) {
        let now = self.now;
        let Some(reader) = &mut self.reader else {
            return self.server.received(bytes, now).expect("the client's bytes are right");
        };
        let Some((request, rest)) = reader.read(bytes).expect("the client asks rightly") else { return };
        self.reader = None;
        match request {
            Request::Start(ticket, _) => {
                assert!(ticket.opens(self.server.ticket()));
                self.begun += 1;
                if core::mem::take(&mut self.late) {
                    return self.refuse(RefusedReason::Begun);
                }
                self.server.attach(None, now).unwrap();
            }
            Request::Resume(_) if self.begun == 0 => return self.refuse(RefusedReason::NoSuchSession),
            Request::Resume(resume) => {
                assert!(resume.ticket.opens(self.server.ticket()));
                self.server.attach(Some(&resume), now).unwrap();
            }
            other => panic!("unexpected: {other:?}"),
        }
        self.server.received(&rest, now).expect("the client's bytes are right");
    }

    /// The server closes the stream behind that.
    pub(crate) fn refuse(&mut self, reason: RefusedReason) {
        let refused = refusal(&Refusal { reason, text: String::new() });
        self.client.received(&refused, self.now).expect("the server's bytes are right");
        self.lose_stream(self.now + Duration::from_millis(10));
    }

    fn at_program(&mut self) {
        while let Some(event) = self.server.next_event() {
            self.program.event(event, &mut self.server, self.now);
        }
        self.program.run(&mut self.server, self.now);
    }

    fn at_user(&mut self) {
        while let Some(event) = self.client.next_event() {
            if let ClientEvent::Output { bytes, .. }
            | ClientEvent::Screen(bytes)
            | ClientEvent::Scrollback(bytes) = &event
            {
                self.unwritten += bytes.len();
            }
            self.user.event(&event, &mut self.client, self.now);
        }
        let written =
            self.unwritten.min(self.habits.taken.saturating_sub(self.random.below(3) as usize).max(1));
        self.client.output_taken(written);
        self.unwritten -= written;
        self.user.run(&mut self.client, self.now);
    }

    /// The stream is lost for so long; the ends notice at once.
    pub(crate) fn lose_stream(&mut self, until: Time) {
        self.up.cut();
        self.down.cut();
        self.client.stream_lost();
        if self.reader.is_none() {
            self.server.stream_lost(self.now);
        }
        self.away_until = Some(until);
    }

    /// When something happens next.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let now = self.now;
        let there = self.away_until.is_none();
        // A caller writes what is left a moment later.
        let later = (self.unwritten > 0).then(|| now + std::time::Duration::from_micros(50));
        let sends = there
            && (self.client.wants_to_send(now) && self.up.room() > 0
                || self.server.wants_to_send(now) && self.down.room() > 0);
        let deadlines = [self.client.deadline(), self.server.deadline()];
        let deadlines = deadlines.into_iter().flatten().map(|deadline| deadline.at).filter(|_| there);
        [self.up.next(), self.down.next(), later, sends.then_some(now), self.away_until]
            .into_iter()
            .chain([self.program.next(), self.user.next()])
            .flatten()
            .chain(deadlines)
            .min()
    }
}
