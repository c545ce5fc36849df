//! What all peers share: the node's own link.

use strait_scheduler::Rate;
use strait_scheduler::metering::Admission;

/// The node's own link, which all peers share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnLink {
    pub(crate) rate: Option<Rate>,
    /// Bytes that the link layer adds to each datagram.
    pub(crate) overhead: usize,
    /// What may leave.
    pub(crate) admission: Admission,
    /// Whether nothing leaves unasked.
    pub(crate) quiet: bool,
}
