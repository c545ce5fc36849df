//! Logins of peers: what needs the system. Who may log in is said in the configuration (`[[login]]`).
//!
//! ```text
//! strait-login    root, or the daemon's user; reads who opened a stream, and no byte of it     (its caller)
//! strait-session  the monitor of one stream: PAM, records, the program's end                   workers.rs, pam.rs, records.rs
//! strait-kerberos the user of packets, confined: reads tokens, where a ticket says who it is   kerberos/exchange.rs
//! strait-realm    the same user: which account a principal gets by rules of the system         kerberos.rs
//! strait-ticket   the account without privileges: writes a ticket that was passed on           kerberos/cache.rs
//! strait-keeper   the account without privileges: reads the stream, has the terminal           (its caller), pty.rs, modes.rs
//! the program     the account, as the keeper says                                              launch.rs, account.rs, signals.rs
//! ```
//!
//! Keepers are found by later streams at sockets in a folder for each account (`folder`), monitors at their places (`places`); a monitor
//! that is told to end ends its session (`ending`). At the client, [`RawTerminal`] is the person's terminal.
#![allow(unsafe_code)]

mod account;
mod ending;
mod folder;
mod forecast;
mod kerberos;
mod launch;
mod modes;
mod pam;
mod permit;
mod places;
mod pty;
mod records;
mod signals;
mod terminal;
mod workers;

pub use account::Account;
pub use folder::{SessionChannel, SessionListener};
pub use forecast::lacking_for_logins;
pub use kerberos::{KerberosDemand, refused_before_kerberos};
pub use launch::{Launch, Launcher};
pub use pam::PamError;
pub use permit::{LoginPermit, LoginWho, RefusalLog};
pub use places::RunningSession;
pub use pty::{Pty, PtySize, do_not_wait};
pub use signals::{signal_group, signal_name};
pub use terminal::{
    NO_CONTROLLING_TERMINAL, NO_WAIT, RawTerminal, TerminalSignal, TerminalSignals, is_terminal, stop_self,
};
pub use workers::{KeeperPort, LoginWorkers, SessionRefused, WhyRefused, serve_login};
