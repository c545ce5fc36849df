//! Who opened a stream, and as whom it is served.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::account::Account;
use super::kerberos::KerberosDemand;
use super::pam::PamLogin;
use super::places::RunningSession;
use crate::path_memory::unix_time;
use crate::services::{StreamHead, UNLISTED, printable};

/// Who opened a stream, and as whom it is served.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoginPermit {
    /// As whom it is served, or what says so.
    pub who: LoginWho,
    /// The interface of the node.
    pub interface: String,
    /// Sessions that the peer may have at once.
    pub sessions: u16,
    /// How long PAM may take.
    pub patience: Duration,
    /// The head of the stream, and the log of its refusals.
    pub logs: RefusalLog,
}

impl LoginPermit {
    /// The same for a peer that is no account yet.
    pub(super) fn log_refused(&self, text: &str) {
        self.logs.say("login", text);
    }
}

/// The log of what one stream is refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RefusalLog {
    /// The head of the stream, which names its peer.
    pub head: StreamHead,
    /// True if people see the lines; a peer can be refused as fast as it can send.
    pub loud: bool,
}

impl RefusalLog {
    /// Logs what is refused, in a word, and why.
    pub fn say(&self, what: &str, why: &str) {
        let line = self.head.refused(what, why);
        if self.loud {
            tracing::warn!("{line}");
        } else {
            tracing::debug!("{line}");
        }
    }
}

/// As whom a stream is served.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum LoginWho {
    /// As this account, of this process's user.
    Own(Account),
    /// As the account with a name, which is looked up where no other stream waits for it: the system may ask a server that is away.
    Named {
        /// The name.
        name: String,
        /// What the client is told if there is none.
        unknown: Vec<u8>,
    },
    /// As the account that a ticket gives, which the stream begins with.
    Ticket(Box<KerberosDemand>),
}

/// A stream that is served.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// The peer's principal, if a ticket said who it is.
    pub(super) principal: Option<String>,
    pub(super) account: Account,
    pub(super) interface: String,
    pub(super) sessions: u16,
    pub(super) patience: Duration,
    pub(super) logs: RefusalLog,
}

/// `site-b`, or `site-b (alice@EXAMPLE.ORG)`.
impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.principal {
            None => f.write_str(self.peer()),
            Some(principal) => write!(f, "{} ({})", self.peer(), printable(principal)),
        }
    }
}

impl Served {
    /// The peer's name.
    pub(super) fn peer(&self) -> &str {
        &self.logs.head.peer
    }

    /// Logs why it is not let in, unless the peer has had its lines.
    pub(super) fn log_refused(&self, text: &str) {
        let principal = self.principal.as_ref().map(|it| format!("{it} ")).unwrap_or_default();
        self.logs.say("login", &format!("{principal}may not {text}"));
    }

    /// By whom its session is counted: nodes that are not listed are counted together, as keys cost nothing.
    pub(super) fn counted_as(&self) -> &str {
        if self.peer() == UNLISTED { UNLISTED } else { &self.logs.head.key }
    }

    /// A session of it that begins now.
    pub(super) fn session(&self) -> RunningSession {
        RunningSession {
            process: std::process::id().cast_signed(),
            interface: self.interface.clone(),
            peer: self.peer().to_owned(),
            key: self.logs.head.key.clone(),
            principal: self.principal.clone(),
            account: self.account.name.clone(),
            since: unix_time(),
        }
    }

    pub(super) fn pam<'a>(&'a self, terminal: Option<&'a Path>) -> PamLogin<'a> {
        let from = self.logs.head.from.ip().to_canonical();
        PamLogin { account: &self.account.name, from, terminal, limit: self.patience }
    }
}
