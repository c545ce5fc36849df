//! `strait login`: which session, and how it is shown.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;
use std::sync::Arc;

use strait_login::prediction::PredictMode;
use strait_login::{ClientOptions, LoginClient, Program, SessionRequest, Terminal, WindowSize};
use strait_node::clock::Clock;
use strait_node::login::{RawTerminal, TerminalSignals};

use super::driver::DrivenSession;
use super::road::{LoginRoad, OwnNode, user_and_peer};
use super::terminal::{LoginEnd, LoginTerminal, LoginTerminalOptions, own, window};
use super::tickets::{self, KeptTicket};
use super::{here, list};
use crate::failure::{Code, CommandResult, Failure};
use crate::flags::{Login, Predict};
use crate::output::note;

/// Variables that are sent without being named; the peer's configuration says which it takes.
const VARIABLES: [&str; 2] = ["LANG", "LANGUAGE"];
/// And those that begin so.
const LOCALE: &str = "LC_";
/// What a terminal is called that says nothing.
const TERM: &[u8] = b"dumb";
/// Most bytes of that.
const TERM_MAX: usize = 64;

/// Runs the command; the exit code is the program's, or 255.
pub(crate) fn login(flags: &Login) -> ExitCode {
    let done = |done: CommandResult| done.map(|()| LoginEnd::Status(0));
    let end = match (flags.list, flags.here) {
        (true, _) => done(list::list(flags)),
        (_, true) => done(here::here(flags)),
        _ => run(flags),
    };
    match end.unwrap_or_else(LoginEnd::Failed) {
        LoginEnd::Status(status) => ExitCode::from(status),
        LoginEnd::Left(why) => {
            note(format_args!(
                "strait: left the session running ({why}); `strait login --resume` goes back to it"
            ));
            ExitCode::from(Code::Login.number())
        }
        LoginEnd::Failed(failure) => own(failure).report("strait"),
    }
}

fn run(flags: &Login) -> Result<LoginEnd, Failure> {
    let kept = flags.resume.as_ref().map(|session| find_ticket(flags, session)).transpose()?;
    let (user, peer) = match (&kept, &flags.peer) {
        (Some(kept), _) => (kept.account.clone(), kept.peer.clone()),
        (None, Some(peer)) => {
            let (user, peer) = user_and_peer(peer)?;
            (user.to_owned(), peer.to_owned())
        }
        (None, None) => {
            return Err(Failure::new("no peer is named").remedy("write `strait login PEER`"));
        }
    };
    let terminal = kept.is_some() || wants_terminal(flags);
    let raw = if terminal { RawTerminal::new(io::stdin().as_fd()).ok() } else { None };
    let road = Arc::new(LoginRoad::find(
        flags.tunnel.as_deref(),
        &peer,
        &user,
        OwnNode::Restarted,
        (&flags.kerberos).into(),
    )?);
    let clock = Clock::start();
    let stream = road.waiting(|| road.open())?;
    let options = ClientOptions { rate_bits: stream.rate_bits };
    let size = raw.as_ref().and_then(|raw| raw.size().ok()).map_or(WindowSize::USUAL, window);
    let client = match kept {
        Some(kept) => LoginClient::resume(kept.ticket, Some(size), options),
        None => {
            LoginClient::start(tickets::new_ticket()?, request(flags, terminal, raw.as_ref(), size), options)
        }
    };
    // The thread that opens streams has them blocked, as it comes later.
    let signals = TerminalSignals::take().map_err(Failure::doing("hear of signals"))?;
    let session = DrivenSession::new(client, stream, road, clock)?;
    let options = LoginTerminalOptions {
        peer,
        account: user,
        terminal,
        raw,
        escape: flags.escape,
        predict: match flags.predict {
            Predict::Auto => PredictMode::Auto,
            Predict::Always => PredictMode::Always,
            Predict::Never => PredictMode::Never,
        },
    };
    let terminal = LoginTerminal::new(options, session, signals, clock);
    Ok(terminal.map_err(Failure::doing("use standard output"))?.run())
}

/// As ssh(1) does it: a terminal for a shell whose keyboard is one, none for a command.
fn wants_terminal(flags: &Login) -> bool {
    let is_terminal = strait_node::login::is_terminal(io::stdin().as_fd());
    flags.terminal || !flags.no_terminal && flags.command.is_empty() && is_terminal
}

fn request(flags: &Login, terminal: bool, raw: Option<&RawTerminal>, size: WindowSize) -> SessionRequest {
    let program = if flags.command.is_empty() {
        Program::Shell
    } else {
        // As ssh(1): the shell there splits it again.
        Program::Command(flags.command.join(OsStr::new(" ")).into_vec())
    };
    let term = std::env::var_os("TERM").map(OsString::into_vec).filter(|term| term.len() <= TERM_MAX);
    let terminal = terminal.then(|| Terminal {
        term: term.filter(|term| !term.is_empty()).unwrap_or_else(|| TERM.to_vec()),
        size,
        modes: raw.and_then(|raw| raw.modes().ok()).unwrap_or_default(),
    });
    SessionRequest { program, terminal, environment: environment(flags), agent: false }
}

fn environment(flags: &Login) -> Vec<(Vec<u8>, Vec<u8>)> {
    let sent = |name: &OsStr| {
        let bytes = name.as_bytes();
        VARIABLES.iter().any(|known| known.as_bytes() == bytes)
            || bytes.starts_with(LOCALE.as_bytes())
            || flags.env.iter().any(|named| named == name)
    };
    let all = std::env::vars_os().filter(|(name, _)| sent(name));
    all.map(|(name, value)| (name.into_vec(), value.into_vec())).collect()
}

/// The ticket of the session that is meant: by its number or the beginning of it, or the newest of this peer, or of all.
fn find_ticket(flags: &Login, session: &str) -> Result<KeptTicket, Failure> {
    let named = flags.peer.as_deref().map(user_and_peer).transpose()?;
    let meant = |kept: &KeptTicket| {
        let number = kept.ticket.session().to_string();
        number.starts_with(session)
            && named.is_none_or(|(user, peer)| kept.peer == peer && (user.is_empty() || kept.account == user))
    };
    let found: Vec<_> = tickets::all().into_iter().filter(meant).collect();
    if found.len() > 1
        && !session.is_empty()
        && found.iter().all(|kept| kept.ticket.session().to_string() != session)
    {
        return Err(Failure::new(format!("several sessions begin with {session}"))
            .remedy("`strait login --list` has their numbers"));
    }
    found.into_iter().next().ok_or_else(|| {
        Failure::new("there is no such session to go back to")
            .remedy("`strait login --list` says which there are")
    })
}
