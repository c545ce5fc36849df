//! The TLS connection below an exchange.

use serde::{Deserialize, Serialize};

/// The label of the exporter (RFC 9266 section 4.1). Its context is empty.
pub const BINDING_LABEL: &[u8] = b"EXPORTER-Channel-Binding";
/// How many bytes the exporter gives (RFC 9266 section 4.1).
pub const BINDING_LEN: usize = 32;

/// What the type of a binding is called, with the colon that parts it from its bytes (RFC 5056 section 2.1).
const PREFIX: &[u8] = b"tls-exporter:";

/// A channel binding of type `tls-exporter` (RFC 9266): both ends of one TLS connection have the same, and no others.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding([u8; BINDING_LEN]);

impl Binding {
    /// Of what the connection's exporter gave for [`BINDING_LABEL`] without context.
    #[must_use]
    pub fn new(exported: [u8; BINDING_LEN]) -> Binding {
        Binding(exported)
    }

    /// The bytes that GSSAPI binds.
    pub(crate) fn application_data(&self) -> Vec<u8> {
        [PREFIX, &self.0].concat()
    }
}

impl core::fmt::Debug for Binding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Binding(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_part_of_what_is_bound() {
        let bytes = Binding::new([7; 32]).application_data();
        assert_eq!(&bytes[..13], b"tls-exporter:");
        assert_eq!(bytes[13..], [7; 32]);
        assert_eq!(format!("{:?}", Binding::new([7; 32])), "Binding(..)");
    }
}
