//! Keys that an authority signed: certificates, lists of those that it revoked, and the messages by which both are served.
//!
//! Nothing here reads a clock, a socket or a file. What a directory says is believed because the authority signed it, so a directory can
//! hold back what it has, but invent nothing; a list whose number goes back, or that is too old, shows that it holds back.
//!
//! ```text
//! certificate   a card, a name, addresses, from when to when            certificate.rs
//! revocation    serial numbers that are no longer good, numbered         revocation.rs
//! trust         what is believed at which time, and why not               trust.rs
//! message       what is asked and answered                                message.rs
//! index         certificates by what they are asked for by             index.rs
//! look-ups      which are under way, and what is known not to be there   look_ups.rs
//! ```

mod certificate;
mod index;
mod look_ups;
mod message;
mod revocation;
mod trust;

pub use certificate::{
    CERTIFICATE_MAX, CERTIFICATE_TEXT_MAX, Certificate, CertificateError, CertificateTerms, ENDPOINT_MAX,
    NETWORKS_MAX,
};
pub use index::{CertificateIndex, address_of};
pub use look_ups::{Asked, Asker, LookUpCounts, LookUpEnd, LookUps};
pub use message::{
    ANSWER_MAX, Answer, BadMessage, HEAD_LEN, KIND_WATCH, NAMES_LEN_MAX, QUESTION_MAX, Question, REFUSAL_MAX,
};
pub use revocation::{LIST_MAX, ListError, REVOKED_MAX, RevocationList};
pub use trust::{ListChange, Trust, TrustCounts, Untrusted};

#[cfg(test)]
mod tests;
