//! Kerberos at the beginning of a stream: who the client is, before anything else of the stream is read.
//!
//! Tokens go to the system's library, which has had faults, in a process of its own, `strait-kerberos` (`exchange`). It takes the host's
//! key along, becomes the user that handles packets, and reads nothing of the stream but tokens. What it finds out comes to the monitor as
//! a name: which account that is, the monitor decides, and no library of Kerberos runs there. `strait-realm` asks the library for the
//! account of a name (`auth_to_local`), and `strait-ticket` keeps a ticket that the client passed on, as the account (`cache`). Each is a
//! process that says one thing and ends, or is killed (`part`). Frames are in `frames`.

mod cache;
mod exchange;
mod frames;
mod part;

use std::fmt::Display;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strait_kerberos::{Accounts, Binding, KerberosError, TokenFrame, local_account};

use super::account::Account;
use super::permit::LoginPermit;
use crate::privileges::{self, ServiceUser};
use crate::services::{TimeLimit, printable};
pub(super) use cache::TicketCache;
use exchange::{Exchange, ExchangeSays};
pub use frames::refused_before_kerberos;
use frames::{refuse, write};
use part::Part;

/// The time that a client has for its first token, which it has before it opens the stream.
const FIRST_TOKEN: Duration = Duration::from_secs(5);
/// What a client is told of a host that cannot do it; the log has more.
const NOT_SET_UP: &str = "Kerberos is not set up at this peer; its log says what is missing";
/// Bytes of a principal at most.
const PRINCIPAL_MAX: usize = 1024;
/// Characters of a reason at most, in the log.
const REASON_MAX: usize = 1024;

/// What a client has to prove, and what that gives it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KerberosDemand {
    /// Which accounts principals get.
    pub accounts: Accounts,
    /// This host's service, as [`ServiceName::parse`](strait_kerberos::ServiceName::parse) reads it.
    pub service: String,
    /// The file of its key; nothing for the system's.
    pub keytab: Option<PathBuf>,
    /// The user without rights as whom tokens are read.
    pub reader: ServiceUser,
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

/// Has the client prove who it is; nothing if it did not, of which it is told.
pub(super) fn prove(stream: &UnixStream, demand: &KerberosDemand, permit: &LoginPermit) -> Option<Proven> {
    let proven = exchanged(stream, demand, permit.patience).and_then(|(principal, ticket)| {
        let account = account(&principal, demand, permit.patience)?;
        let keep = |ticket: Vec<u8>| TicketCache::keep(&ticket, &account, permit.patience);
        let cache = ticket.map(keep).transpose()?;
        // A client that takes nothing keeps no process with root's rights.
        let _limit = TimeLimit::set(permit.patience)?;
        write(stream, &TokenFrame::Accepted)?;
        Ok(Proven { principal, account, cache })
    });
    proven
        .inspect_err(|Refused { told, logged, token }| {
            permit.log_refused(logged);
            refuse(stream, told, token.clone());
        })
        .ok()
}

/// Why an exchange came to nothing: for the client, for the log, and for the client's library.
#[derive(Debug, Serialize, Deserialize)]
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
    fn here(error: impl Display) -> Refused {
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

/// The client's principal, and the ticket that it passed on. Whoever took the process of the exchange over can say any; it has a key by
/// which tickets of all of them can be made.
fn exchanged(
    stream: &UnixStream,
    demand: &KerberosDemand,
    patience: Duration,
) -> Result<(String, Option<Vec<u8>>), Refused> {
    let part =
        Part::start(c"strait-kerberos", patience, |monitor| Exchange { stream, demand, monitor }.run())?;
    let mut said = part.says(FIRST_TOKEN.min(patience));
    if let Some(ExchangeSays::Begun) = said {
        said = part.says(patience);
    }
    match said {
        Some(ExchangeSays::Proven { principal, has_ticket })
            if principal.len() <= PRINCIPAL_MAX && printable(&principal) == principal =>
        {
            let ticket = has_ticket.then(|| part.hear(patience)).transpose()?;
            Ok((principal, ticket))
        }
        Some(ExchangeSays::Refused(refused)) => {
            Err(Refused { logged: refused.logged.chars().take(REASON_MAX).collect(), ..refused })
        }
        // It was killed.
        _ => Err(Refused::new("the exchange of Kerberos took too long, or failed")),
    }
}

/// The account that a principal gets.
fn account(principal: &str, demand: &KerberosDemand, patience: Duration) -> Result<Account, Refused> {
    let KerberosDemand { accounts, asked, reader, .. } = demand;
    let local = || {
        let part = Part::start(c"strait-realm", patience, |monitor| {
            privileges::drop_all(*reader).map_err(io::Error::other)?;
            part::tell(monitor, &local_account(principal))
        });
        part.ok()?.says(patience)?
    };
    let name = accounts.account(principal, asked, local).ok_or_else(|| {
        Refused::new(match asked.as_str() {
            "" => format!("{principal} has no account here"),
            asked => format!("{principal} may not use the account {}", printable(asked)),
        })
    })?;
    // The system may ask a server that is away.
    let limit = TimeLimit::set(patience)?;
    let account = Account::named(&name);
    drop(limit);
    let account =
        account.ok_or_else(|| Refused::new(format!("there is no account {} here", printable(&name))))?;
    if !privileges::is_root() && !account.is_own() {
        return Err(Refused::new(format!("the daemon is another user's, and gives no account {name}")));
    }
    // A rule for all principals of a realm is not meant for this one.
    if account.user == 0 && !accounts.names(principal) {
        return Err(Refused::new(format!("{principal} gets {name} only if the configuration names it")));
    }
    Ok(account)
}
