//! Kerberos: two ends prove who they are to each other by GSSAPI (RFC 2743, RFC 4121), bound to the TLS connection that carries it
//! (RFC 9266).
//!
//! The system's MIT Kerberos does it. Its library is loaded when the first exchange begins; without it,
//! [`KerberosError::NoLibrary`] says so. The ends have no stream of their own: a step takes a token of the other end and gives the
//! next. Inside a step the library may read files (configuration, keys, tickets) and, at the initiator, ask the KDC: a step
//! may take seconds, and runs in a process that may wait.
//!
//! - [`Initiator`] and [`Acceptor`]: the ends. [`Step`]: what follows.
//! - [`KerberosPeer`]: who the initiator is, and what it has delegated. [`Accounts`]: which account that is.
//! - [`Binding`]: the connection that they must share.
//! - [`TokenFrame`] and [`TokenReader`]: tokens on a stream of bytes.
//! - `library`: functions of the C library; `objects`: what it gives out, released when dropped.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod acceptor;
mod accounts;
mod binding;
mod error;
mod frame;
mod initiator;
mod library;
mod objects;

pub use acceptor::{Acceptor, AcceptorOptions, Delegated, KerberosPeer, default_keytab};
pub use accounts::{Accounts, local_account};
pub use binding::{BINDING_LABEL, BINDING_LEN, Binding};
pub use error::{GssProblem, KerberosError, KerberosRefusal};
pub use frame::{TOKEN_MAX, TokenFrame, TokenReader};
pub use initiator::{Initiator, InitiatorOptions};
pub use objects::ServiceName;

/// What an end does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends this token, and waits for one.
    GoOn(Vec<u8>),
    /// Sends this token, if there is one. Both ends are who they say, as far as this one can know.
    Done(Option<Vec<u8>>),
}

/// Whether the system has a GSSAPI library.
///
/// # Errors
/// [`KerberosError::NoLibrary`], with what the system says.
pub fn available() -> Result<(), KerberosError> {
    library::library().map(|_| ())
}
