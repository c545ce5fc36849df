//! `[directory]`: peers that are not in the file, but have certificates of an authority.

mod pin;

use std::time::Duration;

use ipnet::IpNet;
use strait_keying::PublicKey;
use strait_keying::sessionless::DailyPolicy;

use super::problem::Problem;
use super::reader::Section;
use super::sections::{span, words};
use super::value;
pub use pin::PinnedPeer;
use pin::pins;

pub(super) const KEYS: &[&str] = &[
    "authority",
    "servers",
    "allowed_ips",
    "keying",
    "daily_keys",
    "certificates",
    "pin",
    "max_stale",
    "max_peers",
    "max_certificates",
];

/// How old the newest revocation list may be where the file says nothing: an authority that signs one each day may miss six.
const MAX_STALE: Duration = Duration::from_secs(7 * 24 * 3600);
const MAX_STALE_RANGE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(365 * 24 * 3600)];

/// How keys for peers of a directory are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryKeying {
    /// In handshakes.
    Session,
    /// Without sessions, from the keys on their cards.
    Sessionless,
}

/// Which certificates a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryCertificates {
    /// All that there are, each as soon as it is there.
    All,
    /// Those that it needed.
    OnDemand,
}

/// `[directory]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectorySection {
    /// Whose certificates are taken.
    pub authority: PublicKey,
    /// Directories, `host:port`; one at a time is followed.
    pub servers: Vec<String>,
    /// Networks in which addresses of such peers may be. They lead into the tunnel.
    pub allowed_ips: Vec<IpNet>,
    /// How keys for such peers are made.
    pub keying: DirectoryKeying,
    /// When keys without sessions have daily keys in them.
    pub daily_keys: DailyPolicy,
    /// Which certificates it has.
    pub certificates: DirectoryCertificates,
    /// Peers that are looked up at the start, and stay: only where certificates are looked up on demand.
    pub pin: Vec<PinnedPeer>,
    /// How old the newest revocation list may be for new peers to be taken.
    pub max_stale: Duration,
    /// Such peers at most.
    pub max_peers: usize,
    /// Certificates at most that are kept on disk, where they are looked up on demand.
    pub max_certificates: usize,
}

impl DirectorySection {
    /// Peers where the file says nothing.
    pub const MAX_PEERS: usize = 1000;
    /// Most of them: each has keys and a queue.
    pub const MOST_PEERS: usize = 10_000;
    /// Certificates where the file says nothing, and most of them: more than peers may be; some 24 MB.
    pub const MAX_CERTIFICATES: usize = 12_000;
}

/// The value of `key` from 1 to `most`.
fn count(section: &Section<'_>, key: &'static str, most: usize) -> Option<usize> {
    let value = section.integer(key, 1..=u64::try_from(most).unwrap_or(u64::MAX))?;
    usize::try_from(value).ok()
}

/// Certificates that are kept, where they are looked up.
fn max_certificates(section: &Section<'_>, certificates: DirectoryCertificates, max_peers: usize) -> usize {
    let kept = count(section, "max_certificates", DirectorySection::MAX_CERTIFICATES);
    if let (Some(kept), Some(value)) = (kept, section.value("max_certificates")) {
        if certificates == DirectoryCertificates::All {
            section.note(value.span(), Problem::NothingLookedUp);
        } else if kept < max_peers {
            section.note(value.span(), Problem::TooFewCertificates { least: max_peers });
        }
    }
    kept.unwrap_or(DirectorySection::MAX_CERTIFICATES)
}

pub(super) fn directory(section: &Section<'_>) -> Option<DirectorySection> {
    section.require("authority", "authority = \"xTIB...\"");
    section.require("servers", "servers = [\"directory.example.org:7707\"]");
    section.require("allowed_ips", "allowed_ips = [\"10.77.0.0/16\"]");
    let authority = section.parsed("authority", "a public key in quotes", str::parse::<PublicKey>);
    let server = |text: &str| {
        let server = words("servers", text)?;
        server.parse::<super::Endpoint>().map_err(Problem::from).map(|_| server)
    };
    let servers =
        section.list("servers", "a list of hosts with ports, as [\"directory.example.org:7707\"]", server);
    let networks = section.list("allowed_ips", "a list of networks, as [\"10.77.0.0/16\"]", value::network);
    let mut allowed_ips: Vec<IpNet> = networks.iter().map(|net| net.value).collect();
    allowed_ips.sort_unstable();
    allowed_ips.dedup();
    let [least, most] = MAX_STALE_RANGE;
    let keyings = [DirectoryKeying::Session, DirectoryKeying::Sessionless];
    let max_peers =
        count(section, "max_peers", DirectorySection::MOST_PEERS).unwrap_or(DirectorySection::MAX_PEERS);
    let kinds = [DirectoryCertificates::All, DirectoryCertificates::OnDemand];
    let certificates =
        section.choice("certificates", &["all", "on demand"], &kinds).unwrap_or(DirectoryCertificates::All);
    let policies = [DailyPolicy::Off, DailyPolicy::Prefer, DailyPolicy::Require];
    Some(DirectorySection {
        certificates,
        daily_keys: section
            .choice("daily_keys", &["off", "prefer", "require"], &policies)
            .unwrap_or_default(),
        pin: pins(section, certificates, max_peers),
        max_certificates: max_certificates(section, certificates, max_peers),
        servers: servers.into_iter().map(|server| server.value).collect(),
        allowed_ips,
        keying: section
            .choice("keying", &["session", "sessionless"], &keyings)
            .unwrap_or(DirectoryKeying::Session),
        max_stale: span(section, "max_stale", least, most, ["1m", "365d"]).unwrap_or(MAX_STALE),
        max_peers,
        authority: authority?.value,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn parse(node: &str, rest: &str) -> Result<Config, String> {
        let text =
            format!("[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1\"\n{node}[directory]\n{rest}");
        Config::parse(&text, Path::new("x.toml")).map_err(|error| error.to_string())
    }

    fn section() -> String {
        let key = PublicKey::from_bytes([7; 32]);
        format!("authority = \"{key}\"\nservers = \"192.0.2.1:7707\"\nallowed_ips = \"10.77.0.0/16\"\n")
    }

    #[test]
    fn what_it_says_and_what_it_leaves_out() {
        let read = parse("peers = \"directory\"\n", &section()).unwrap().directory.unwrap();
        assert_eq!((read.max_stale, read.max_peers), (MAX_STALE, 1000));
        assert_eq!(
            (read.servers, read.keying),
            (vec!["192.0.2.1:7707".to_owned()], DirectoryKeying::Session)
        );
        let more = format!("{}max_stale = \"1h\"\nmax_peers = 5\nkeying = \"sessionless\"\n", section());
        let read = parse("peers = \"directory\"\n", &more).unwrap().directory.unwrap();
        assert_eq!((read.max_stale, read.max_peers), (Duration::from_secs(3600), 5));
        assert_eq!(read.keying, DirectoryKeying::Sessionless);
        assert_eq!(read.certificates, DirectoryCertificates::All);
        assert_eq!(read.daily_keys, DailyPolicy::Off);
        let more = format!("{}keying = \"sessionless\"\ndaily_keys = \"require\"\n", section());
        let read = parse("peers = \"directory\"\n", &more).unwrap().directory.unwrap();
        assert_eq!(read.daily_keys, DailyPolicy::Require);
        let more = format!(
            "{}certificates = \"on demand\"\npin = [\"b\", \"a\", \"b\", \"10.77.0.9\"]\nmax_certificates = 1000\n",
            section()
        );
        let read = parse("peers = \"directory\"\n", &more).unwrap().directory.unwrap();
        let name = |name: &str| PinnedPeer::Name(name.parse().unwrap());
        let address = PinnedPeer::Address("10.77.0.9".parse().unwrap());
        assert_eq!((read.certificates, read.max_certificates), (DirectoryCertificates::OnDemand, 1000));
        assert_eq!(read.pin, [name("a"), name("b"), address.clone()]);
        let networks = ["10.77.0.8/29".parse().unwrap()];
        assert!(address.is("c", &networks) && !address.is("c", &[]) && name("a").is("a", &[]));
    }

    #[test]
    fn a_quiet_node_is_told_that_following_a_directory_is_not_quiet() {
        let more = format!("{}[link]\nquiet = true\n", section());
        let read = parse("peers = \"directory\"\n", &more).unwrap();
        let says = |loss: &String| loss.starts_with("`[directory]` still follows its server");
        assert!(read.quiet_losses().iter().any(says), "{:?}", read.quiet_losses());
    }

    #[test]
    fn mistakes_are_said_with_their_remedy() {
        for (node, rest, words) in [
            ("", section(), "write `peers = \"directory\"` in [node]"),
            ("peers = \"directory\"\n", String::new(), "[directory] needs `authority`"),
            ("peers = \"directory\"\n", section().replace(":7707", ""), "port"),
            (
                "peers = \"directory\"\n",
                section().replace("authority = \"", "authority = \"x"),
                "45 characters",
            ),
            ("peers = \"directory\"\n", format!("{}max_peers = 0\n", section()), "between 1 and 10000"),
            ("peers = \"directory\"\n", format!("{}max_stale = \"1s\"\n", section()), "max_stale"),
            (
                "peers = \"directory\"\n",
                format!("{}daily_keys = \"prefer\"\n", section()),
                "daily keys are for keys without sessions",
            ),
            (
                "peers = \"directory\"\n",
                format!("{}keying = \"sessionless\"\ndaily_keys = \"on\"\n", section()),
                "prefer",
            ),
            ("peers = \"directry\"\n", section(), "did you mean `directory`?"),
            (
                "peers = \"directory\"\n",
                format!("{}pin = \"a\"\n", section()),
                "certificates = \"on demand\"",
            ),
            (
                "peers = \"directory\"\n",
                format!("{}certificates = \"on demand\"\npin = [\"a b\"]\n", section()),
                "a name in a certificate",
            ),
            (
                "peers = \"directory\"\n",
                format!("{}certificates = \"on demand\"\nmax_peers = 1\npin = [\"a\", \"b\"]\n", section()),
                "no more than `max_peers`",
            ),
            (
                "peers = \"directory\"\n",
                format!("{}certificates = \"on demand\"\nmax_certificates = 999\n", section()),
                "at least as many as `max_peers`: 1000",
            ),
            (
                "peers = \"directory\"\n",
                format!("{}max_certificates = 999\n", section()),
                "`max_certificates` is for `certificates = \"on demand\"`",
            ),
        ] {
            let said = parse(node, &rest).unwrap_err();
            assert!(said.contains(words), "{node}{rest}: {said}");
        }
        let text = "[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1\"\npeers = \"directory\"\n";
        let said = Config::parse(text, Path::new("x.toml")).unwrap_err().to_string();
        assert!(
            said.contains("[node] needs `[directory]`") || said.contains("needs `[directory]`"),
            "{said}"
        );
    }
}
