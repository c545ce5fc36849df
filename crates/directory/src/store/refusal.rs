//! Why something is not kept.

use strait_keying::directory::{CertificateError, Untrusted};

/// Of which kind a reason is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// The authority did not sign it, or of daily keys a node with a good certificate; or it is malformed.
    Foreign,
    /// A certificate that has expired.
    Expired,
    /// A certificate that is revoked.
    Revoked,
    /// A certificate that is not newer than the one that is kept for its key; the same of daily keys.
    Older,
    /// A list that is older than the one that is kept, or another one with its number.
    OlderList,
    /// A list from the future.
    FutureList,
    /// Daily keys for days that are far off, or from the future.
    OtherDays,
    /// etcd does not take it.
    Etcd,
    /// The store cannot be read or written.
    Store,
}

impl RefusalReason {
    /// All of them.
    pub const ALL: [RefusalReason; 9] = [
        RefusalReason::Foreign,
        RefusalReason::Expired,
        RefusalReason::Revoked,
        RefusalReason::Older,
        RefusalReason::OlderList,
        RefusalReason::FutureList,
        RefusalReason::OtherDays,
        RefusalReason::Etcd,
        RefusalReason::Store,
    ];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RefusalReason::Foreign => "foreign",
            RefusalReason::Expired => "expired",
            RefusalReason::Revoked => "revoked",
            RefusalReason::Older => "older",
            RefusalReason::OlderList => "older_list",
            RefusalReason::FutureList => "future_list",
            RefusalReason::OtherDays => "other_days",
            RefusalReason::Etcd => "etcd",
            RefusalReason::Store => "store",
        }
    }
}

/// Why something is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of reason.
    pub reason: RefusalReason,
    /// The same for who put it.
    pub words: String,
}

impl Refusal {
    /// A refusal for this reason, in these words.
    #[must_use]
    pub const fn new(reason: RefusalReason, words: String) -> Refusal {
        Refusal { reason, words }
    }
}

impl From<CertificateError> for Refusal {
    fn from(error: CertificateError) -> Refusal {
        Refusal::new(RefusalReason::Foreign, format!("this {error}"))
    }
}

impl From<Untrusted> for Refusal {
    fn from(error: Untrusted) -> Refusal {
        let reason = match error {
            Untrusted::Expired | Untrusted::NotYet => RefusalReason::Expired,
            Untrusted::Revoked => RefusalReason::Revoked,
            Untrusted::OlderList { .. } | Untrusted::OtherList(_) => RefusalReason::OlderList,
            Untrusted::FutureList(_) => RefusalReason::FutureList,
            _ => RefusalReason::Foreign,
        };
        let words = match error {
            Untrusted::List(error) => format!("this {error}"),
            Untrusted::OlderList { given, known } => {
                format!("list {given} is older than list {known}, which is kept")
            }
            other => other.to_string(),
        };
        Refusal::new(reason, words)
    }
}
