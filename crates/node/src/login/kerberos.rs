//! Kerberos at the beginning of a stream: who the client is, before anything else of the stream is read.
//!
//! The exchange runs in a process of its own, `strait-kerberos`. It has root's rights, as it reads the host's key, and reads nothing of
//! the stream but tokens, which go to the system's library. It ends with the exchange, or is killed when that takes too long. A ticket
//! that the client passed on it writes as the account (`cache`). Frames are in `frames`.

mod cache;
mod frames;

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strait_kerberos::{
    Acceptor, AcceptorOptions, Accounts, Binding, GssProblem, KerberosError, KerberosPeer, ServiceName, Step,
    TokenFrame, TokenReader,
};

use super::account::Account;
use super::folder;
use super::permit::LoginPermit;
use super::workers::{MEMORY, limit_memory, wait_for};
use crate::privileges;
use crate::process::{ProcessChannel, fork};
use crate::services::{TimeLimit, printable};
pub(super) use cache::TicketCache;
use cache::{cache_file, store};
pub use frames::refused_before_kerberos;
use frames::{read, refuse, write};

/// Tokens of a client's at most. Kerberos takes one, or two where the library asks for a second exchange of clocks (RFC 4121).
const TOKENS_MAX: usize = 4;
/// The time that a client has for its first token, which it has before it opens the stream.
const FIRST_TOKEN: Duration = Duration::from_secs(5);
/// What a client is told of a host that cannot do it; the log has more.
const NOT_SET_UP: &str = "Kerberos is not set up at this peer; its log says what is missing";

/// What a client has to prove, and what that gives it.
#[derive(Clone, Debug)]
pub struct KerberosDemand {
    /// Which accounts principals get.
    pub accounts: Accounts,
    /// This host's service, as [`ServiceName::parse`] reads it.
    pub service: String,
    /// The file of its key; nothing for the system's.
    pub keytab: Option<PathBuf>,
    /// The connection that carries the stream.
    pub binding: Binding,
    /// The account that is asked for; empty for the principal's own.
    pub asked: String,
}

/// Who a client is, by its ticket.
#[derive(Debug)]
pub(super) struct Proven {
    pub(super) principal: String,
    pub(super) account: Account,
    pub(super) cache: Option<TicketCache>,
}

/// What the process of the exchange says to the monitor.
#[derive(Debug, Serialize, Deserialize)]
enum ExchangeSays {
    Proven { principal: String, account: String, has_cache: bool },
    Refused { text: String },
}

/// Has the client prove who it is; nothing if it did not, of which it is told.
pub(super) fn prove(stream: &UnixStream, demand: &KerberosDemand, permit: &LoginPermit) -> Option<Proven> {
    let (monitor, peer) = (std::process::id(), &permit.logs.head.peer);
    let failed = |error: io::Error| tracing::error!("{peer}: no login: {error}");
    let refused = |text: &str| permit.log_refused(text);
    let (ours, theirs) = ProcessChannel::pair().map_err(failed).ok()?;
    let process = fork(c"strait-kerberos", &[ours.as_fd()], || {
        Exchange { stream, demand, monitor: &theirs, patience: permit.patience }.run(monitor)
    });
    let process = process.map_err(failed).ok()?;
    drop(theirs);
    let said = ours.receive().ok().and_then(|(said, _)| serde_json::from_slice(&said).ok());
    let proven = match said {
        Some(ExchangeSays::Proven { principal, account, has_cache }) => {
            proven(principal, &account, has_cache, monitor)
        }
        Some(ExchangeSays::Refused { text }) => {
            refused(&text);
            None
        }
        // It was killed.
        None => {
            let text = "the exchange of Kerberos took too long, or failed";
            refused(text);
            refuse(stream, text, Vec::new());
            None
        }
    };
    let _ = wait_for(process);
    proven
}

fn proven(principal: String, account: &str, has_cache: bool, monitor: u32) -> Option<Proven> {
    let account = Account::named(account)?;
    let cache =
        if has_cache { Some(TicketCache(cache_file(&folder::of(&account).ok()?, monitor))) } else { None };
    Some(Proven { principal, account, cache })
}

/// Why an exchange came to nothing: for the client, for the log, and for the client's library.
struct Refused {
    told: String,
    logged: String,
    token: Vec<u8>,
}

impl Refused {
    fn new(text: impl Into<String>) -> Refused {
        let text = text.into();
        Refused { told: text.clone(), logged: text, token: Vec::new() }
    }

    /// What is wrong with this host is not for the peer.
    fn here(error: &KerberosError) -> Refused {
        Refused { told: NOT_SET_UP.to_owned(), logged: error.to_string(), token: Vec::new() }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::new(format!("the exchange of Kerberos broke off: {error}"))
    }
}

impl From<KerberosError> for Refused {
    fn from(error: KerberosError) -> Refused {
        Refused::new(error.to_string())
    }
}

/// Gives up what an exchange does not need, before a byte of the peer's is read.
fn confine() -> Result<(), Refused> {
    limit_memory(MEMORY)?;
    let failed = |error: privileges::PrivilegeError| Refused {
        logged: error.to_string(),
        ..Refused::new("the system of this peer failed")
    };
    privileges::drop_all_but_accounts().map_err(failed)
}

/// The exchange, in its own process.
struct Exchange<'a> {
    stream: &'a UnixStream,
    demand: &'a KerberosDemand,
    monitor: &'a ProcessChannel,
    /// The time that it has once the first token is there.
    patience: Duration,
}

impl Exchange<'_> {
    fn run(&self, number: u32) -> libc::c_int {
        let Ok(mut limit) = TimeLimit::set(self.patience.min(FIRST_TOKEN)) else { return 1 };
        match confine().and_then(|()| self.exchange(number, &mut limit)) {
            Ok(proven) => {
                // Before the client knows: what it says next is for a keeper that is there.
                let told = self.tell(&proven).and_then(|()| write(self.stream, &TokenFrame::Accepted));
                i32::from(told.is_err())
            }
            Err(Refused { told, logged, token }) => {
                let _ = self.tell(&ExchangeSays::Refused { text: logged });
                drop(limit);
                refuse(self.stream, &told, token);
                1
            }
        }
    }

    fn tell(&self, says: &ExchangeSays) -> io::Result<()> {
        self.monitor.send(&serde_json::to_vec(says)?, &[])
    }

    /// Sets another limit when the first token is there.
    fn exchange(&self, number: u32, limit: &mut TimeLimit) -> Result<ExchangeSays, Refused> {
        let options = AcceptorOptions {
            service: ServiceName::parse(&self.demand.service),
            keytab: self.demand.keytab.as_ref().map(|path| format!("FILE:{}", path.display())),
        };
        let mut acceptor =
            Acceptor::new(&options, &self.demand.binding).map_err(|error| Refused::here(&error))?;
        self.talk(&mut acceptor, limit)?;
        let peer = acceptor.peer().ok_or(KerberosError::NotMutual)?;
        let account = self.account(peer)?;
        // From here on as the account: the ticket is its own.
        let has_cache = match &peer.delegated {
            Some(delegated) => store(delegated, &account, number).map(|()| true).map_err(|why| {
                Refused::new(format!("the ticket that was passed on cannot be kept: {why}"))
            })?,
            None => false,
        };
        Ok(ExchangeSays::Proven { principal: peer.principal.clone(), account: account.name, has_cache })
    }

    /// Takes tokens until the client has proved who it is.
    fn talk(&self, acceptor: &mut Acceptor, limit: &mut TimeLimit) -> Result<(), Refused> {
        let mut reader = TokenReader::default();
        for turn in 0..TOKENS_MAX {
            let TokenFrame::Token(token) = read(self.stream, &mut reader)? else {
                return Err(Refused::new("the client broke the exchange of Kerberos off"));
            };
            if turn == 0 {
                *limit = TimeLimit::set(self.patience)?;
            }
            match acceptor.step(&token) {
                Ok(Step::GoOn(token)) => write(self.stream, &TokenFrame::Token(token))?,
                Ok(Step::Done(token)) => {
                    return token.map_or(Ok(()), |token| {
                        write(self.stream, &TokenFrame::Token(token)).map_err(Refused::from)
                    });
                }
                Err(refusal) => {
                    let is_ours = refusal.error.problem() == Some(GssProblem::NoCredentials);
                    let refused =
                        if is_ours { Refused::here(&refusal.error) } else { Refused::from(refusal.error) };
                    return Err(Refused { token: refusal.token.unwrap_or_default(), ..refused });
                }
            }
        }
        Err(Refused::new("the exchange of Kerberos does not end"))
    }

    /// The account that the client gets.
    fn account(&self, peer: &KerberosPeer) -> Result<Account, Refused> {
        let KerberosDemand { accounts, asked, .. } = self.demand;
        let principal = printable(&peer.principal);
        let name = accounts.account(peer, asked).ok_or_else(|| {
            Refused::new(match asked.as_str() {
                "" => format!("{principal} has no account here"),
                asked => format!("{principal} may not use the account {}", printable(asked)),
            })
        })?;
        let account = Account::named(name)
            .ok_or_else(|| Refused::new(format!("there is no account {} here", printable(name))))?;
        if !privileges::is_root() && !account.is_own() {
            return Err(Refused::new(format!("the daemon is another user's, and gives no account {name}")));
        }
        // A rule for all principals of a realm is not meant for this one.
        if account.user == 0 && !accounts.names(peer) {
            return Err(Refused::new(format!("{principal} gets {name} only if the configuration names it")));
        }
        Ok(account)
    }
}
