//! Why a connection ends.

/// What was wrong with what `ssh` sent. The connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SshError {
    /// Something else than SSH 2.
    #[error("what arrives is not SSH 2")]
    NotSsh,
    /// A packet that breaks RFC 4253 or RFC 4254.
    #[error("a packet breaks the protocol: {0}")]
    Protocol(&'static str),
    /// No algorithm that both ends have.
    #[error("both ends have no {0} in common")]
    NoCommon(&'static str),
    /// A packet that was not encrypted with the connection's key.
    #[error("a packet does not verify")]
    Forged,
    /// `ssh` has said that it ends the connection.
    #[error("ssh has ended the connection: {0}")]
    Disconnected(String),
}
