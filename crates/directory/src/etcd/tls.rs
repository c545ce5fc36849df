//! What is wrong with TLS to etcd, in the words of the configuration.

use std::error::Error;
use std::io;

use rustls::{AlertDescription, CertificateError};

use crate::settings::EtcdSettings;

/// What the configuration says of TLS.
#[derive(Clone, Copy, Debug)]
pub(super) struct TlsTrust {
    has_ca: bool,
    has_identity: bool,
}

impl TlsTrust {
    pub(super) const fn of(settings: &EtcdSettings) -> TlsTrust {
        TlsTrust { has_ca: settings.ca.is_some(), has_identity: settings.identity.is_some() }
    }

    /// What is wrong, if a certificate is what `error` comes from.
    pub(super) fn judge(self, error: &(dyn Error + 'static)) -> Option<String> {
        match cause(error)? {
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => Some(if self.has_ca {
                "its certificate is not signed by `ca`".to_owned()
            } else {
                "its certificate is signed by none that this system trusts; `ca` names another".to_owned()
            }),
            rustls::Error::InvalidCertificate(other) => Some(format!("its certificate is not good: {other}")),
            // Servers tell a missing certificate and one of others by different alerts, or by the same (RFC 8446 section 6.2).
            rustls::Error::AlertReceived(
                alert @ (AlertDescription::CertificateRequired
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA),
            ) => Some(if self.has_identity {
                format!("etcd does not take this client's certificate ({alert:?})")
            } else {
                "etcd wants a certificate of its clients: `certificate` and `key` name one".to_owned()
            }),
            _ => None,
        }
    }
}

/// The error of TLS that `error` comes from.
fn cause<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An error of I/O does not name what it is made of as its source.
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_told_from_other_errors() {
        let trust = TlsTrust { has_ca: true, has_identity: false };
        let of = |error: rustls::Error| trust.judge(&io::Error::other(io::Error::other(error)));
        let alert = of(rustls::Error::AlertReceived(AlertDescription::CertificateRequired)).unwrap();
        assert!(alert.contains("wants a certificate"), "{alert}");
        let issuer = of(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)).unwrap();
        assert!(issuer.contains("not signed by `ca`"), "{issuer}");
        assert_eq!(of(rustls::Error::DecryptError), None);
        assert_eq!(trust.judge(&io::Error::from(io::ErrorKind::ConnectionRefused)), None);
    }
}
