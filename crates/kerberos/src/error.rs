//! Why an exchange failed.

/// What GSSAPI calls the problem (RFC 2743 section 1.2.1.1), as far as a caller does something else for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GssProblem {
    /// There is no ticket, or no key.
    NoCredentials,
    /// The ticket is over.
    Expired,
    /// The token was seen before.
    Replayed,
    /// The clocks of the two hosts differ by more than Kerberos allows (five minutes, where nothing else is configured).
    ClockSkew,
    /// The ends are not on the same TLS connection.
    BadBinding,
    /// The token makes no sense.
    DefectiveToken,
    /// A name makes no sense.
    BadName,
    /// Anything else: the text says what.
    Other,
}

/// Why an exchange failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KerberosError {
    /// The system has no GSSAPI library, or one that lacks a function.
    #[error("no Kerberos on this system: {0}")]
    NoLibrary(String),
    /// The library refused.
    #[error("Kerberos: cannot {doing}: {text}")]
    Gss {
        /// What was tried.
        doing: &'static str,
        /// The kind of problem.
        problem: GssProblem,
        /// What the library says, for people.
        text: String,
    },
    /// The library does not say which file has the keys.
    #[error("Kerberos: no name of a keytab (error {0})")]
    NoKeytab(i32),
    /// The other end did not bind the exchange to this TLS connection.
    #[error("Kerberos: the peer's token is not bound to this connection")]
    NotBound,
    /// The other end did not prove itself.
    #[error("Kerberos: the peer did not prove who it is")]
    NotMutual,
    /// A name or path has a byte of 0 in it.
    #[error("Kerberos: a name has a byte of 0")]
    ZeroByte,
    /// A token that is empty or longer than [`TOKEN_MAX`](crate::TOKEN_MAX).
    #[error("Kerberos: a token of {0} bytes")]
    TokenLength(usize),
    /// A frame of another kind than there are.
    #[error("Kerberos: a frame of unknown kind {0}")]
    UnknownFrame(u8),
    /// The exchange is over.
    #[error("Kerberos: a token after the end of the exchange")]
    Over,
}

impl KerberosError {
    /// The kind of problem that the library has, if it was the library's.
    #[must_use]
    pub fn problem(&self) -> Option<GssProblem> {
        match self {
            KerberosError::Gss { problem, .. } => Some(*problem),
            _ => None,
        }
    }
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct KerberosRefusal {
    /// Why.
    pub error: KerberosError,
    /// A token that tells the other end, if the library has one.
    pub token: Option<Vec<u8>>,
}

impl From<KerberosError> for KerberosRefusal {
    fn from(error: KerberosError) -> KerberosRefusal {
        KerberosRefusal { error, token: None }
    }
}
