//! One session: a program, the stream that is attached to it, if there is one, and what waits in between.
//!
//! One loop: it moves all that can be moved, and sleeps only when nothing could ([`Session::turn`]). `stream` has what is between
//! the client and the server, this file the rest.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use strait_clock::Time;
use strait_login::{Exit, LoginServer, Refusal, RefusedReason, ServerOptions, SessionRequest, Ticket};
use strait_node::clock::Clock;
use strait_node::login::{KeeperPort, SessionChannel, SessionListener, signal_name};
use strait_node::path_memory::unix_time;
use strait_node::poll::{self, PollFd};

use super::super::wire::Wire;
use super::keeper::{Keeper, Opened};
use super::program::{Output, RunningProgram};
use super::seconds_of;
use super::visits::{AgentDoor, SessionOwner, socket_name};

mod stream;

/// Reads of output in one turn, between which input, which is urgent, has its own.
const OUTPUT_TURNS: usize = 4;
/// How long after the end of a program and its last output its terminal is read, if other processes still have it: what was written to
/// it is on its way through the kernel.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// The shortest sleep, should something be due that moves nothing.
const LEAST_SLEEP: Duration = Duration::from_millis(1);
/// How long a session goes on without a stream at most while no client has shown that it heard of it: none may be able to come back.
/// One that heard may be without a path for so long, as the connections of logins are.
const UNHEARD: Duration = Duration::from_secs(600);
/// Set to another number of seconds, for tests.
const UNHEARD_VARIABLE: &str = "STRAIT_UNHEARD_SECONDS";
/// How long a program may take to end after it was hung up, until this process ends without it.
const HANGING_UP: Duration = Duration::from_secs(5);

/// A session.
pub(super) struct Session<'a> {
    pub(super) port: &'a KeeperPort,
    pub(super) owner: SessionOwner,
    pub(super) server: LoginServer,
    program: RunningProgram,
    wire: Option<Wire>,
    listener: SessionListener,
    /// The socket at which its programs find the client's agent, or the reason why they find none.
    pub(super) agents: Result<AgentDoor, &'static str>,
    pub(super) clock: Clock,
    /// How long it goes on without a stream, and at most while no client may have heard of it.
    detached: Duration,
    unheard: Duration,
    /// Since when there is no stream.
    alone_since: Option<Time>,
    /// When something was typed last.
    typed: Time,
    /// When it began, in seconds since 1970.
    since: u64,
    exit: Option<Exit>,
    /// Whether the server was told of the exit, and whether the client has heard of it.
    exit_told: bool,
    exit_heard: bool,
    /// When there was output, or the program ended.
    last_output: Time,
    /// Whether the client said that it leaves the session running.
    left: bool,
    /// Since when it is hung up.
    hung_up: Option<Time>,
}

impl<'a> Session<'a> {
    /// Starts what the client asks for.
    pub(super) fn begin(
        port: &'a KeeperPort,
        keeper: &Keeper,
        (ticket, request): (Ticket, SessionRequest),
    ) -> Result<Session<'a>, Refusal> {
        let number = ticket.session();
        let listener = listen(&socket_name(number))?;
        let mut environment = request.environment.clone();
        environment.retain(|(name, _)| keeper.section.takes(name));
        let agents = match (request.agent, keeper.section.agent) {
            (true, true) => AgentDoor::open(port, number, &mut environment)
                .map_err(|_| "the socket of the agent cannot be made here"),
            (true, false) => {
                Err("agent = true in this peer's [[login]] would let programs here ask the agent")
            }
            (false, _) => Err("no agent is wanted in this session"),
        };
        let program = RunningProgram::start(port, &request, environment)?;
        if request.agent {
            let (peer, account) = (&keeper.logs.head.peer, &port.account().name);
            // No line that keeps a host out: many ask for it wherever they go.
            let may = agents.as_ref().map_or_else(|why| format!("may not: {why}"), |_| "may".to_owned());
            tracing::info!("{peer}: programs as {account} want to ask the client's agent, and {may}");
        }
        let clock = Clock::start();
        let options = ServerOptions {
            ticket,
            account: port.account().name.clone(),
            terminal: request.terminal.as_ref().map(|terminal| terminal.size.clamped()),
            rate_bits: keeper.rate_bits(),
        };
        let now = clock.now();
        Ok(Session {
            port,
            owner: keeper.owner(port),
            server: LoginServer::new(options, now),
            program,
            wire: None,
            listener,
            agents,
            clock,
            detached: keeper.section.detached,
            unheard: seconds_of(UNHEARD_VARIABLE, UNHEARD),
            alone_since: Some(now),
            typed: now,
            since: unix_time(),
            exit: None,
            exit_told: false,
            exit_heard: false,
            last_output: now,
            left: false,
            hung_up: None,
        })
    }

    /// Serves until the program has ended and the client knows, or no client comes back; how this process ends.
    pub(super) fn run(mut self, opened: Opened) -> i32 {
        let now = self.clock.now();
        if self.server.attach(None, now).is_ok() {
            self.take_stream(opened);
        }
        let mut buffer = Wire::buffer();
        loop {
            while self.turn(&mut buffer) {}
            if self.is_over() {
                return 0;
            }
            if let Err(error) = self.sleep() {
                tracing::error!("a login: {error}");
                return 1;
            }
        }
    }

    /// Moves all that can be moved once; whether anything was.
    fn turn(&mut self, buffer: &mut [u8]) -> bool {
        let mut moved = self.read_stream(buffer);
        moved |= self.write_input();
        moved |= self.read_output(buffer);
        moved |= self.see_end();
        moved |= self.write_stream();
        moved |= self.visits();
        moved |= self.forget();
        moved
    }

    /// Input for the program.
    fn write_input(&mut self) -> bool {
        let took = self.program.takes_input();
        let (written, _) = self.program.write();
        if written > 0 {
            self.server.input_written(written, self.clock.now());
        }
        let closed = took && !self.program.takes_input();
        if closed {
            self.server.input_closed();
        }
        written > 0 || closed
    }

    /// Output of the program, as much as the server takes.
    fn read_output(&mut self, buffer: &mut [u8]) -> bool {
        let mut moved = false;
        for _ in 0..OUTPUT_TURNS {
            let room = self.server.output_room().min(buffer.len());
            if room == 0 {
                break;
            }
            let Some(output) = buffer.get_mut(..room).and_then(|buffer| self.program.read(buffer)) else {
                break;
            };
            moved = true;
            self.last_output = self.clock.now();
            // A program that stops the echo says so before it asks for a password.
            if let Some(modes) = self.program.new_modes() {
                self.server.modes(modes);
            }
            match output {
                Output::Bytes(kind, length) => {
                    self.server.output(kind, buffer.get(..length).unwrap_or_default(), self.clock.now());
                }
                Output::Ended(kind) => self.server.output_ended(kind),
            }
        }
        if let Some(modes) = self.program.new_modes() {
            self.server.modes(modes);
            moved = true;
        }
        moved
    }

    /// Whether the program has ended, and tells the server after its last output.
    fn see_end(&mut self) -> bool {
        let mut moved = false;
        if self.exit.is_none() {
            self.exit = match self.port.ended() {
                Ok(status) => Some(exit_of(status)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
                // The monitor is gone.
                Err(_) => Some(Exit::Status(255)),
            };
            moved = self.exit.is_some();
            if moved {
                self.last_output = self.clock.now();
            }
        }
        let Some(exit) = self.exit.as_ref().filter(|_| !self.exit_told) else { return moved };
        // Processes that stay behind may hold a terminal for ever.
        if self.server.output_room() > 0
            && self.clock.now().since(self.last_output) >= LAST_OUTPUT
            && let Some(kind) = self.program.give_up_output()
        {
            self.server.output_ended(kind);
            moved = true;
        }
        if self.program.output_ended() {
            self.server.exited(exit.clone());
            self.exit_told = true;
            moved = true;
        }
        moved
    }

    fn hang_up(&mut self) {
        if self.hung_up.is_none() {
            self.hung_up = Some(self.clock.now());
            self.program.hang_up();
        }
    }

    /// Streams that come back, questions, and connections to the agent.
    fn visits(&mut self) -> bool {
        let mut moved = false;
        while let Ok(visitor) = self.listener.accept() {
            self.visited(visitor);
            moved = true;
        }
        moved |= self.agents.as_mut().is_ok_and(AgentDoor::serve);
        moved
    }

    /// What a list says of it: seconds since 1970, seconds without input, whether a client is there, what it is.
    pub(super) fn description(&self) -> String {
        let idle = self.clock.now().since(self.typed).as_secs();
        format!("{} {idle} {} {}", self.since, u8::from(self.wire.is_some()), self.program.what)
    }

    /// Whether there is nothing left to do.
    fn is_over(&self) -> bool {
        let now = self.clock.now();
        let gone = self.hung_up.is_some_and(|since| match self.exit {
            Some(_) => self.wire.is_none(),
            None => now.since(since) >= HANGING_UP,
        });
        self.exit_heard || gone
    }

    /// Hangs the program up once no client is expected any more: without a terminal, it would not notice the end of this process.
    fn forget(&mut self) -> bool {
        let now = self.clock.now();
        let forgotten = self.hung_up.is_none() && self.forgotten_at().is_some_and(|at| at <= now);
        if forgotten {
            self.hang_up();
        }
        forgotten
    }

    /// When no client is expected any more.
    fn forgotten_at(&self) -> Option<Time> {
        let known = self.server.is_known();
        let patience = if known { self.detached } else { self.detached.min(self.unheard) };
        self.alone_since.map(|since| since + patience)
    }

    /// Sleeps until something can be moved, or is due.
    fn sleep(&self) -> io::Result<()> {
        let now = self.clock.now();
        let wire = self.wire.as_ref().map_or_else(PollFd::ignored, Wire::interest);
        let ended = if self.exit.is_none() { PollFd::readable(self.port.as_fd()) } else { PollFd::ignored() };
        let output = self.server.output_room() > 0;
        let [one, two, three] = self.program.interest(output);
        let (agents, waiting) =
            self.agents.as_ref().map_or_else(|_| (PollFd::ignored(), PollFd::ignored()), AgentDoor::interest);
        let listener = PollFd::readable(self.listener.as_fd());
        let mut all = [wire, ended, one, two, three, agents, waiting, listener];
        let alone = self.forgotten_at().filter(|_| self.hung_up.is_none());
        let hung = self.hung_up.filter(|_| self.exit.is_none()).map(|since| since + HANGING_UP);
        let due = self.server.deadline().map(|deadline| deadline.at).filter(|_| self.wire.is_some());
        let ends = output && self.exit.is_some() && !self.exit_told && !self.program.output_ended();
        let last = (ends && self.program.has_terminal()).then(|| self.last_output + LAST_OUTPUT);
        let due = [alone, hung, due, last].into_iter().flatten().min();
        poll::wait(&mut all, due.map(|at| at.since(now).max(LEAST_SLEEP))).map(drop)
    }
}

/// The socket of a new session.
fn listen(name: &str) -> Result<SessionListener, Refusal> {
    let refused = |reason, text| Refusal { reason, text };
    let listener = match SessionListener::bind(name) {
        // A socket that a session has left behind is removed by looking whether one is there.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match SessionChannel::connect(name) {
            Ok(_) => return Err(refused(RefusedReason::Begun, "the session has begun".to_owned())),
            Err(_) => SessionListener::bind(name),
        },
        bound => bound,
    };
    listener.map_err(|error| refused(RefusedReason::System, format!("no socket for the session: {error}")))
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Status(u8::try_from(code & 0xff).unwrap_or(255)),
        (None, signal) => Exit::Signal {
            name: signal_name(signal.unwrap_or(0)),
            core_dumped: status.core_dumped(),
            message: String::new(),
        },
    }
}
