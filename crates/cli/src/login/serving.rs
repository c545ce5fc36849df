//! The process that serves logins to peers, for a node: it decides by its configuration who may log in as whom, and makes the processes
//! of each stream, of which it reads nothing.
//!
//! ```text
//! keeper    the first message of a stream, and what becomes of it
//! allowed   sessions that may not go on
//! session   one session: program, streams, timers
//! program   the program's terminal or pipes
//! visits    later streams of a session: they come back, list, or bring an agent
//! forward   one forwarded connection
//! ```

mod allowed;
mod forward;
mod keeper;
mod program;
mod session;
mod visits;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use strait_login::{KERBEROS_SERVICE, Refusal, RefusedReason, SERVICE, VERSION, refusal};
use strait_node::clock::Clock;
use strait_node::config::{Config, KerberosSection, LoginSection};
use strait_node::daemon::ServiceMain;
use strait_node::login::{
    Account, KerberosDemand, LoginPermit, LoginWho, LoginWorkers, RefusalLog, refused_before_kerberos,
    serve_login,
};
use strait_node::privileges::{self, ServiceUser};
use strait_node::services::{ServiceChannel, ServiceEvent, StreamHead};
use strait_scheduler::Budget;

use crate::served::{KnownPeers, RefusedStreams};
use keeper::Keeper;

/// How long PAM may take, and an exchange of Kerberos: a module that asks a server that is away, twice over.
const PAM: Duration = Duration::from_secs(30);
/// Set to another number of seconds, for tests of modules that hang.
const PAM_VARIABLE: &str = "STRAIT_PAM_SECONDS";
/// How often it looks whether processes have ended, while there are any.
const LOOK: Duration = Duration::from_secs(1);

/// Makes what serves the logins of the configuration at `path`, and ends sessions that it does not allow; none if there are neither. The
/// daemon says what is wrong with it.
pub(crate) fn service(path: &Path) -> Option<ServiceMain> {
    // The daemon reads the same file, and changes to no other folder before.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let config = Config::load_without_identity(&path).ok()?;
    let reader = ServiceUser::find(config.node.user.as_deref()).ok()?;
    let mut service = LoginService::new(path, reader, config.node.interface.clone());
    service.take(config);
    let needed = !service.logins.is_empty() || service.sessions().next().is_some();
    needed.then(|| Box::new(move |channel: ServiceChannel| service.run(&channel)) as ServiceMain)
}

/// Serves the stream of a login that this process was started for, if it was, and returns its exit status.
pub(crate) fn serve_one() -> Option<i32> {
    serve_login(|keeper: Keeper, port, stream| keeper.run(port, stream))
}

/// Lines that are logged on a peer that is refused: so many a second, and so many at once. As the daemon has it for handshakes.
const LINES: u64 = 2;
const LINES_BURST: u64 = 20;

/// Who may log in, and who does.
struct LoginService {
    path: PathBuf,
    /// Interface of the node, as long as it runs.
    interface: String,
    logins: Vec<LoginSection>,
    /// What this host is to Kerberos.
    kerberos: KerberosSection,
    /// The user as whom packets are handled, and tokens of Kerberos, until the daemon ends.
    reader: ServiceUser,
    peers: KnownPeers,
    workers: LoginWorkers,
    refused: RefusedStreams,
    /// Lines that may be logged on each peer, and how many were left out. Only peers of the configuration are here.
    lines: BTreeMap<String, (Budget, u64)>,
    clock: Clock,
}

impl LoginService {
    fn new(path: PathBuf, reader: ServiceUser, interface: String) -> LoginService {
        LoginService {
            path,
            interface,
            logins: Vec::new(),
            kerberos: KerberosSection::default(),
            reader,
            peers: KnownPeers::default(),
            workers: LoginWorkers::default(),
            refused: RefusedStreams::default(),
            lines: BTreeMap::new(),
            clock: Clock::start(),
        }
    }

    /// Takes the sections of the configuration; while something is wrong with it, those from before stay.
    fn read_again(&mut self) {
        match Config::load_without_identity(&self.path) {
            Ok(config) => {
                self.take(config);
                self.end_what_is_not_allowed();
            }
            Err(error) => tracing::error!("logins are served as before: {error}"),
        }
    }

    fn take(&mut self, config: Config) {
        self.peers = KnownPeers::of(&config);
        self.logins = config.logins;
        self.kerberos = config.kerberos;
        self.lines.retain(|name, _| self.peers.has(name));
    }

    /// Serves until the node ends.
    fn run(mut self, channel: &ServiceChannel) -> i32 {
        self.end_what_is_not_allowed();
        loop {
            let quiet = self.workers.is_empty() && self.refused.is_empty();
            match channel.next((!quiet).then_some(LOOK)) {
                Ok(ServiceEvent::Stream(head, stream)) => self.stream(&head, stream),
                Ok(ServiceEvent::ConfigChanged) => self.read_again(),
                Ok(ServiceEvent::Silence) => self.workers.reap(),
                // Sessions go on: their processes have sockets of their own.
                Err(_) => return 0,
            }
            self.refused.expire();
        }
    }

    /// Has a stream served, or says why not.
    fn stream(&mut self, head: &StreamHead, stream: UnixStream) {
        let known = self.peers.opened(head);
        if !known || ![SERVICE, KERBEROS_SERVICE].contains(&head.service) || head.version != VERSION {
            return self.say(head, "it is not a peer any more, or asks for what this version does not know");
        }
        let (section, who) = match self.permitted(head) {
            Ok((section, who)) => (section.clone(), who),
            Err(why) => {
                self.say(head, &why.text);
                return self.turn_away(stream, head, &why);
            }
        };
        // What other processes find out, they log, which know nothing of each other.
        let logs = RefusalLog { head: head.clone(), loud: self.has_line(&head.peer) };
        let permit = LoginPermit {
            who,
            interface: self.interface.clone(),
            sessions: section.sessions,
            patience: seconds_of(PAM_VARIABLE, PAM),
            logs: logs.clone(),
        };
        // A keeper reads nothing of who may be which account.
        let keeper = Keeper { logs, section: LoginSection { kerberos: None, ..section } };
        if let Err(error) = self.workers.start(&permit, &keeper, stream.as_fd()) {
            let (reason, text) = match error.kind() {
                io::ErrorKind::ResourceBusy => (RefusedReason::TooMany, "this peer has too many streams"),
                _ => (RefusedReason::System, "no process could be started"),
            };
            self.say(head, &format!("{text}: {error}"));
            self.turn_away(stream, head, &Refusal { reason, text: text.to_owned() });
        }
    }

    /// Logs that a peer is refused, which it can be as fast as it can send; lines that it has no budget for are counted.
    fn say(&mut self, head: &StreamHead, why: &str) {
        let loud = self.has_line(&head.peer);
        let skipped = self.lines.get_mut(&head.peer).map(|(_, skipped)| skipped);
        let logs = RefusalLog { head: head.clone(), loud: true };
        match (loud, skipped) {
            (false, Some(skipped)) => *skipped += 1,
            (true, Some(skipped @ 1..)) => {
                let left_out = format!("{why} ({} such lines left out)", std::mem::take(skipped));
                logs.say("login", &left_out);
            }
            _ => logs.say("login", why),
        }
    }

    /// Takes a line from the peer's budget.
    fn has_line(&mut self, peer: &str) -> bool {
        let new = || (Budget::new(LINES, LINES_BURST), 0);
        let (budget, _) = self.lines.entry(peer.to_owned()).or_insert_with(new);
        budget.take(1, self.clock.now())
    }

    /// What the peer may, and as whom it is served, or what says so.
    fn permitted(&self, head: &StreamHead) -> Result<(&LoginSection, LoginWho), Refusal> {
        let refused = |text: &str| Refusal { reason: RefusedReason::NotAllowed, text: text.to_owned() };
        let section = self.logins.iter().find(|section| section.peer == head.peer);
        let section = section.ok_or_else(|| refused("this peer may not log in here (no [[login]])"))?;
        let asked = std::str::from_utf8(&head.name).unwrap_or("\u{fffd}");
        let who = match (&section.kerberos, head.service == KERBEROS_SERVICE) {
            (None, false) => account(section, asked)?,
            (None, true) => {
                return Err(refused("logins here take no Kerberos ticket (no `kerberos` in [[login]])"));
            }
            (Some(_), false) => return Err(refused("logins here take a Kerberos ticket: use --kerberos")),
            (Some(accounts), true) => LoginWho::Ticket(Box::new(KerberosDemand {
                accounts: accounts.clone(),
                service: self.kerberos.service.clone(),
                keytab: self.kerberos.keytab.clone(),
                reader: self.reader,
                // The node gives it with each such stream.
                binding: head.binding.clone().ok_or_else(|| refused("the stream has no binding"))?,
                asked: asked.to_owned(),
            })),
        };
        Ok((section, who))
    }

    /// Tells a client why it is not served.
    fn turn_away(&mut self, mut stream: UnixStream, head: &StreamHead, why: &Refusal) {
        let says =
            if head.service == KERBEROS_SERVICE { refused_before_kerberos(&why.text) } else { refusal(why) };
        let told = stream.set_nonblocking(true).and_then(|()| stream.write_all(&says));
        self.refused.keep(stream, told);
    }
}

/// The account of the section that is asked for.
fn account(section: &LoginSection, asked: &str) -> Result<LoginWho, Refusal> {
    let refused = |reason, text: String| Refusal { reason, text };
    if !privileges::is_root() {
        let own = Account::own()
            .ok_or_else(|| refused(RefusedReason::System, "the daemon's user has no account".to_owned()))?;
        return if asked.is_empty() || asked == own.name {
            Ok(LoginWho::Own(own))
        } else {
            let text = format!("the daemon is {}'s, and gives no other account", own.name);
            Err(refused(RefusedReason::NotAllowed, text))
        };
    }
    let listed = match asked {
        "" => section.accounts.first(),
        asked => section.accounts.iter().find(|account| *account == asked),
    };
    let name = listed.ok_or_else(|| {
        let text = match asked {
            "" => "its [[login]] lists no account".to_owned(),
            _ => "this peer may not use that account".to_owned(),
        };
        refused(RefusedReason::NotAllowed, text)
    })?;
    let unknown = refused(RefusedReason::NoSuchAccount, format!("there is no account {name} here"));
    Ok(LoginWho::Named { name: name.clone(), unknown: refusal(&unknown) })
}

/// The seconds that a variable of the environment says to a build for tests; `usual` where it says nothing, and in what is delivered:
/// root's processes have no switches for tests.
fn seconds_of(variable: &str, usual: Duration) -> Duration {
    let set = std::env::var(variable).ok().filter(|_| cfg!(debug_assertions));
    let set = set.and_then(|text| text.parse().ok());
    set.map_or(usual, Duration::from_secs)
}
