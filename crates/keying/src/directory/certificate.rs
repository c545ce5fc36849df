//! What an authority says of a node: a number, a name, networks, from when to when, and the node's own card.
//!
//! ```text
//! strait-certificate BASE64      of      version u8 | field | field | .. | signature (64)
//! ```
//!
//! Fields are those of cards. The authority's signature covers a label and all before it.

use core::fmt;
use core::net::IpAddr;

use ipnet::IpNet;
use strait_wire::sessionless::Name;

use crate::sessionless::{CardError, CardName, KeyCard, key_name, text_name};
use crate::signed_fields::{self as fields, BadFields};
use crate::{PrivateKey, PublicKey, base64};

const PREFIX: &str = "strait-certificate ";
const VERSION: u8 = 1;
const LABEL: &[u8] = b"strait certificate v1\0";
/// Most networks: what a site has, and what one look-up may bring.
pub const NETWORKS_MAX: usize = 64;
/// Most bytes of an endpoint: a name in the DNS (RFC 1035 section 2.3.4), `:` and a port.
pub const ENDPOINT_MAX: usize = 261;
/// Most bytes of a certificate: a card of 4,096 bytes, and all other fields at their longest.
pub const CERTIFICATE_MAX: usize = 6144;
/// Most characters of a certificate as text.
pub const CERTIFICATE_TEXT_MAX: usize = PREFIX.len() + CERTIFICATE_MAX.div_ceil(3) * 4;

const SERIAL: u8 = 1;
const NAME: u8 = 2;
const CARD: u8 = 3;
const NETWORKS: u8 = 4;
const VALID: u8 = 5;
const ENDPOINT: u8 = 6;
/// Tags below this one are known.
const TAGS: usize = 7;

/// What is no certificate, or none of this authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// It does not begin as a certificate does, or is too long.
    #[error("is not a certificate: a certificate is one line that begins with `strait-certificate`")]
    NoCertificate,
    /// It is not base64.
    #[error("is a certificate with a character that is mistyped or cut off")]
    Base64,
    /// It is of another version.
    #[error("is a certificate of version {0}, of which this program knows only 1")]
    Version(u8),
    /// The authority did not sign it.
    #[error("is a certificate that this authority did not sign, or it was changed")]
    Signature,
    /// A field is cut off, comes twice, is missing, or has a value that it must not have.
    #[error("is a certificate whose {0} is missing, comes twice or is wrong")]
    Field(&'static str),
    /// The card in it.
    #[error("is a certificate whose card {0}")]
    Card(CardError),
}

/// What an authority decides of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateTerms {
    /// Its number: unique, and larger than those of earlier certificates for the same key.
    pub serial: u64,
    /// What the node is called.
    pub name: CardName,
    /// Addresses inside the tunnel that are the node's, without host bits; [`NETWORKS_MAX`] at most.
    pub networks: Vec<IpNet>,
    /// The first and the last second at which it is valid, since 1970-01-01 0:00 UTC.
    pub valid: (u64, u64),
    /// Where the node is reached, `host:port`, if it has such a place.
    pub endpoint: Option<String>,
}

/// A certificate that an authority signed: one that exists was verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    terms: CertificateTerms,
    card: KeyCard,
    bytes: Box<[u8]>,
}

impl Certificate {
    /// What is signed: this, then all bytes before the signature.
    pub const LABEL: &[u8] = LABEL;

    /// Signs `terms` for the node that has the card in `card`, its line of text.
    ///
    /// # Errors
    /// [`CertificateError`] when the card or the terms are not what a certificate may have.
    pub fn issue(
        authority: &PrivateKey,
        terms: &CertificateTerms,
        card: &str,
    ) -> Result<Certificate, CertificateError> {
        let card = KeyCard::bytes_of(card).map_err(CertificateError::Card)?;
        let mut bytes = vec![VERSION];
        fields::put(&mut bytes, SERIAL, &terms.serial.to_be_bytes());
        fields::put(&mut bytes, NAME, terms.name.as_str().as_bytes());
        fields::put(&mut bytes, CARD, &card);
        fields::put(&mut bytes, NETWORKS, &networks_to_bytes(&terms.networks));
        fields::put_validity(&mut bytes, VALID, terms.valid);
        if let Some(endpoint) = &terms.endpoint {
            fields::put(&mut bytes, ENDPOINT, endpoint.as_bytes());
        }
        let signature = authority.sign(&[LABEL, &bytes].concat());
        bytes.extend_from_slice(&signature);
        Certificate::from_bytes(&bytes, &authority.public())
    }

    /// Reads a certificate, and verifies that `authority` signed it and the node its card.
    ///
    /// # Errors
    /// [`CertificateError`]; of bytes that are not signed, nothing is looked at but the version.
    pub fn from_bytes(bytes: &[u8], authority: &PublicKey) -> Result<Certificate, CertificateError> {
        if bytes.len() > CERTIFICATE_MAX {
            return Err(CertificateError::NoCertificate);
        }
        match bytes.first() {
            None => return Err(CertificateError::Field("version")),
            Some(&VERSION) => {}
            Some(version) => return Err(CertificateError::Version(*version)),
        }
        let signed = fields::verified(bytes, LABEL, authority).ok_or(CertificateError::Signature)?;
        let fields = fields::split::<TAGS>(signed.get(1..).unwrap_or_default()).map_err(|bad| match bad {
            BadFields::Cut => CertificateError::Field("last field"),
            BadFields::Twice(tag) => CertificateError::Field(field_name(tag)),
        })?;
        let optional = |tag: u8| fields.get(usize::from(tag)).copied().flatten();
        let wrong = |tag: u8| CertificateError::Field(field_name(tag));
        let value = |tag: u8| optional(tag).ok_or(wrong(tag));
        let text = |tag| core::str::from_utf8(value(tag)?).map_err(|_| wrong(tag));
        let terms = CertificateTerms {
            serial: fields::number(value(SERIAL)?).ok_or(wrong(SERIAL))?,
            name: text(NAME)?.parse().map_err(|_| wrong(NAME))?,
            networks: networks_from_bytes(value(NETWORKS)?).ok_or(wrong(NETWORKS))?,
            valid: fields::validity(value(VALID)?).ok_or(wrong(VALID))?,
            endpoint: optional(ENDPOINT)
                .map(|endpoint| endpoint_from(endpoint).ok_or(wrong(ENDPOINT)))
                .transpose()?,
        };
        let card = KeyCard::from_bytes(value(CARD)?).map_err(CertificateError::Card)?;
        Ok(Certificate { terms, card, bytes: bytes.into() })
    }

    /// Reads a line, as [`Certificate::from_bytes`] bytes. White space around it is not part of it.
    ///
    /// # Errors
    /// [`CertificateError`].
    pub fn from_text(text: &str, authority: &PublicKey) -> Result<Certificate, CertificateError> {
        let text = text.trim();
        if text.len() > CERTIFICATE_TEXT_MAX {
            return Err(CertificateError::NoCertificate);
        }
        let encoded = text.strip_prefix(PREFIX).ok_or(CertificateError::NoCertificate)?;
        let bytes = base64::decode_any(encoded.trim_start()).map_err(|_| CertificateError::Base64)?;
        Certificate::from_bytes(&bytes, authority)
    }

    /// It as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// It as a line of text.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{PREFIX}{}", base64::encode(&self.bytes).as_str())
    }

    /// What the authority decided.
    #[must_use]
    pub const fn terms(&self) -> &CertificateTerms {
        &self.terms
    }

    /// Its number.
    #[must_use]
    pub const fn serial(&self) -> u64 {
        self.terms.serial
    }

    /// What the node says of itself.
    #[must_use]
    pub const fn card(&self) -> &KeyCard {
        &self.card
    }

    /// The node's key.
    #[must_use]
    pub const fn key(&self) -> &PublicKey {
        &self.card.key
    }

    /// The hash of its key, by which it is kept.
    #[must_use]
    pub fn key_name(&self) -> Name {
        key_name(&self.card.key)
    }

    /// The hash of the name that the authority gave it.
    #[must_use]
    pub fn text_name(&self) -> Name {
        text_name(self.terms.name.as_str())
    }

    /// The first and the last second at which both it and its card are valid; the first may be after the last.
    #[must_use]
    pub fn valid(&self) -> (u64, u64) {
        let (terms, card) = (self.terms.valid, self.card.valid);
        (terms.0.max(card.0), terms.1.min(card.1))
    }

    /// Whether one of its networks has `address`.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        self.terms.networks.iter().any(|net| net.contains(&address))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("terms", &self.terms).field("key", &self.card.key).finish()
    }
}

/// Networks in bytes: 4 or 6, length of the prefix, address.
fn networks_to_bytes(networks: &[IpNet]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for net in networks {
        match net.addr() {
            IpAddr::V4(address) => {
                bytes.extend_from_slice(&[4, net.prefix_len()]);
                bytes.extend_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                bytes.extend_from_slice(&[6, net.prefix_len()]);
                bytes.extend_from_slice(&address.octets());
            }
        }
    }
    bytes
}

/// The same read: ascending, so that none comes twice and there is one way to write them.
fn networks_from_bytes(mut rest: &[u8]) -> Option<Vec<IpNet>> {
    let mut networks = Vec::new();
    while let [family, len, after @ ..] = rest {
        let (address, next) = match family {
            4 => after.split_first_chunk::<4>().map(|(octets, next)| (IpAddr::from(*octets), next))?,
            6 => after.split_first_chunk::<16>().map(|(octets, next)| (IpAddr::from(*octets), next))?,
            _ => return None,
        };
        let net = IpNet::new(address, *len).ok()?;
        let ascends = networks.last().is_none_or(|last| *last < net);
        if net.trunc() != net || !ascends || networks.len() == NETWORKS_MAX {
            return None;
        }
        networks.push(net);
        rest = next;
    }
    rest.is_empty().then_some(networks)
}

/// A host and a port that is not 0.
fn endpoint_from(bytes: &[u8]) -> Option<String> {
    let text = core::str::from_utf8(bytes).ok().filter(|text| text.len() <= ENDPOINT_MAX)?;
    let (host, port) = text.rsplit_once(':')?;
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]".contains(&byte);
    let port_is_good =
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    (!host.is_empty() && host.bytes().all(known) && port_is_good).then(|| text.to_owned())
}

const fn field_name(tag: u8) -> &'static str {
    match tag {
        SERIAL => "serial number",
        NAME => "name",
        CARD => "card",
        NETWORKS => "list of networks",
        VALID => "validity",
        ENDPOINT => "endpoint",
        _ => "reserved field",
    }
}
