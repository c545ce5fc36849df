//! What is compared, and how each is set.

use super::programs::PeerProgramKind;

/// A way from the first host to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerWay {
    /// Nothing but the link.
    Plain,
    /// Strait, told the link's rate.
    Strait,
    /// Strait, which finds the rate.
    Auto,
    WireGuardGo,
    BoringTun,
    OpenVpn,
    OpenVpnLz4,
    TincZlib,
    TincLzo,
    /// ESP and IPComp of the Linux kernel.
    Ipcomp,
    Ssh,
    SshCompressed,
}

impl PeerWay {
    /// In the order of tables and of runs.
    pub(crate) const ALL: [PeerWay; 12] = [
        PeerWay::Plain,
        PeerWay::Strait,
        PeerWay::Auto,
        PeerWay::WireGuardGo,
        PeerWay::BoringTun,
        PeerWay::OpenVpn,
        PeerWay::OpenVpnLz4,
        PeerWay::TincZlib,
        PeerWay::TincLzo,
        PeerWay::Ipcomp,
        PeerWay::Ssh,
        PeerWay::SshCompressed,
    ];

    /// The one that tables call so.
    pub(crate) fn named(name: &str) -> Result<PeerWay, String> {
        let found = PeerWay::ALL.into_iter().find(|way| way.name() == name);
        found.ok_or_else(|| format!("there are: {}", PeerWay::ALL.map(PeerWay::name).join("; ")))
    }

    /// Whether it differs from a neighbour by one setting, and is measured only where that matters.
    pub(crate) const fn is_variant(self) -> bool {
        matches!(self, PeerWay::Auto | PeerWay::TincLzo)
    }

    /// Whether it is measured when these are asked for: they are, and Strait, beside which all are.
    pub(crate) fn is_asked_for(self, asked: &[PeerWay]) -> bool {
        asked.is_empty() || self == PeerWay::Strait || asked.contains(&self)
    }

    /// Its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            PeerWay::Plain => "plain link",
            PeerWay::Strait => "Strait",
            PeerWay::Auto => "Strait, rate = auto",
            PeerWay::WireGuardGo => "wireguard-go",
            PeerWay::BoringTun => "boringtun",
            PeerWay::OpenVpn => "OpenVPN",
            PeerWay::OpenVpnLz4 => "OpenVPN, lz4",
            PeerWay::TincZlib => "tinc, zlib",
            PeerWay::TincLzo => "tinc, lzo",
            PeerWay::Ipcomp => "Linux IPsec, IPComp",
            PeerWay::Ssh => "ssh -w",
            PeerWay::SshCompressed => "ssh -C -w",
        }
    }

    /// How it is set, as its own configuration says it.
    pub(crate) const fn options(self) -> &'static str {
        match self {
            PeerWay::Plain => "the same TCP without a tunnel",
            PeerWay::Strait => {
                "[link] has the rate; [[compress]] codec = \"auto\" for everything; mtu = 1420; no byte cache"
            }
            PeerWay::Auto => "the same with up = \"auto\" and down = \"auto\"",
            PeerWay::WireGuardGo | PeerWay::BoringTun => "MTU 1440; no keep-alive; in user space",
            PeerWay::OpenVpn => {
                "UDP, TLS, AES-256-GCM, fast-io, tun-mtu 1440, sndbuf and rcvbuf 524288, txqueuelen 1000, no ping; in user space \
                 (disable-dco)"
            }
            PeerWay::OpenVpnLz4 => "the same with compress lz4-v2 and allow-compression yes",
            PeerWay::TincZlib => {
                "UDP, AES-128-CBC, SHA-256, Compression = 6, MTU 1400, PMTUDiscovery = no, for the MTU always fits"
            }
            PeerWay::TincLzo => "the same with Compression = 10",
            PeerWay::Ipcomp => {
                "what strongSwan sets up with compress = yes, without strongSwan, which only agrees on keys: ESP with AES-128-GCM, IPComp \
                 with DEFLATE, MTU 1446; a virtual machine at each end, so only where the link is slower than that, and with its delay"
            }
            PeerWay::Ssh => {
                "point-to-point, aes128-gcm@openssh.com, MTU 1500 (it is a stream); no keep-alive; its connection has CUBIC and \
                 tcp_slow_start_after_idle = 0"
            }
            PeerWay::SshCompressed => "the same with -C",
        }
    }

    /// Which program carries it.
    pub(crate) const fn program(self) -> Option<PeerProgramKind> {
        match self {
            PeerWay::Plain | PeerWay::Strait | PeerWay::Auto => None,
            PeerWay::WireGuardGo => Some(PeerProgramKind::WireGuardGo),
            PeerWay::BoringTun => Some(PeerProgramKind::BoringTun),
            PeerWay::OpenVpn | PeerWay::OpenVpnLz4 => Some(PeerProgramKind::OpenVpn),
            PeerWay::TincZlib | PeerWay::TincLzo => Some(PeerProgramKind::Tinc),
            PeerWay::Ipcomp => Some(PeerProgramKind::Kernel),
            PeerWay::Ssh | PeerWay::SshCompressed => Some(PeerProgramKind::Ssh),
        }
    }
}
