//! One way to protect what two hosts say to each other.

use std::fmt;

use strait_crypto::{Cipher, Integrity, Suite};

/// What is agreed on, keys and addresses apart. IPComp stands inside ESP, ESP inside AH, each of them there or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) ipcomp: bool,
    pub(crate) esp: Option<Esp>,
    pub(crate) ah: Option<Ah>,
    pub(crate) mode: Mode,
    pub(crate) outer: Version,
    /// Whether sequence numbers have 64 bits (RFC 4303 section 2.2.1).
    pub(crate) esn: bool,
    /// Whether ESP goes in UDP (RFC 3948) and not directly behind IP.
    pub(crate) udp: bool,
}

/// What ESP protects with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Esp {
    Combined(Suite),
    /// Without integrity only inside AH.
    Separate(Cipher, Option<Integrity>),
}

/// What AH protects with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ah {
    pub(crate) integrity: Integrity,
    /// Whether its header is padded to 8 bytes over IPv4, too: Linux's way unless it is told otherwise, not that of
    /// RFC 4302 section 3.3.3.2.1.
    pub(crate) padded: bool,
}

/// What is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// What IP carries, between the hosts' outside addresses.
    Transport,
    /// Whole packets of both versions, between their inside addresses.
    Tunnel,
    /// Bundles and fragments of whole packets (RFC 9347), in payloads of this size.
    Aggfrag(u16),
}

/// The version of IP outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V4,
    V6,
}

impl Case {
    /// Tunnel mode over IPv4 with nothing in it yet.
    pub(crate) const EMPTY: Case = Case {
        ipcomp: false,
        esp: None,
        ah: None,
        mode: Mode::Tunnel,
        outer: Version::V4,
        esn: false,
        udp: false,
    };

    /// The same with this ESP.
    pub(crate) const fn esp(self, esp: Esp) -> Case {
        Case { esp: Some(esp), ..self }
    }

    /// The same with an AH as RFC 4302 has it.
    pub(crate) const fn ah(self, integrity: Integrity) -> Case {
        Case { ah: Some(Ah { integrity, padded: false }), ..self }
    }

    /// The same with IPComp.
    pub(crate) const fn ipcomp(self) -> Case {
        Case { ipcomp: true, ..self }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Ah { integrity, padded }) = self.ah {
            write!(f, "ah {integrity} {}", if padded { "padded " } else { "" })?;
        }
        match self.esp {
            None => {}
            Some(Esp::Combined(suite)) => write!(f, "esp {suite} ")?,
            Some(Esp::Separate(cipher, None)) => write!(f, "esp {cipher} ")?,
            Some(Esp::Separate(cipher, Some(integrity))) => write!(f, "esp {cipher} {integrity} ")?,
        }
        if self.ipcomp {
            f.write_str("ipcomp ")?;
        }
        match self.mode {
            Mode::Transport => f.write_str("transport")?,
            Mode::Tunnel => f.write_str("tunnel")?,
            Mode::Aggfrag(size) => write!(f, "aggfrag {size}")?,
        }
        f.write_str(match self.outer {
            Version::V4 => " ipv4",
            Version::V6 => " ipv6",
        })?;
        f.write_str(if self.esn { " esn" } else { "" })?;
        f.write_str(if self.udp { " udp" } else { "" })
    }
}
