//! `[directory]`: peers that are not in the file, but have certificates of an authority.

use std::time::Duration;

use ipnet::IpNet;
use strait_keying::PublicKey;
use strait_keying::sessionless::{CardName, DailyPolicy};

use super::problem::Problem;
use super::reader::Section;
use super::sections::{span, words};
use super::value;

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
];

/// How old the newest revocation list may be where the file says nothing: an authority that signs one each day may miss six.
const MAX_STALE: Duration = Duration::from_secs(7 * 24 * 3600);
const MAX_STALE_RANGE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(365 * 24 * 3600)];
/// Peers where the file says nothing.
const MAX_PEERS: u64 = 1000;
/// Most of them: each has keys and a queue.
const MOST_PEERS: u64 = 10_000;

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
    /// Names of peers that are looked up at the start, and stay: only where certificates are looked up on demand.
    pub pin: Vec<CardName>,
    /// How old the newest revocation list may be for new peers to be taken.
    pub max_stale: Duration,
    /// Such peers at most.
    pub max_peers: usize,
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
    let mut allowed_ips: Vec<IpNet> = networks.iter().map(|net| net.value.trunc()).collect();
    allowed_ips.sort_unstable();
    allowed_ips.dedup();
    let [least, most] = MAX_STALE_RANGE;
    let keyings = [DirectoryKeying::Session, DirectoryKeying::Sessionless];
    let max_peers = section.integer("max_peers", 1..=MOST_PEERS).unwrap_or(MAX_PEERS);
    let kinds = [DirectoryCertificates::All, DirectoryCertificates::OnDemand];
    let certificates =
        section.choice("certificates", &["all", "on demand"], &kinds).unwrap_or(DirectoryCertificates::All);
    let max_peers = usize::try_from(max_peers).unwrap_or(usize::MAX);
    let name = |text: &str| text.parse::<CardName>().map_err(|_| Problem::CertificateName);
    let mut pin: Vec<CardName> = section
        .list("pin", "a list of names, as [\"site-b\"]", name)
        .into_iter()
        .map(|name| name.value)
        .collect();
    pin.sort_unstable();
    pin.dedup();
    if let Some(value) = section.value("pin") {
        if certificates == DirectoryCertificates::All {
            section.note(value.span(), Problem::NothingToPin);
        } else if pin.len() > max_peers {
            section.note(value.span(), Problem::TooManyPins { most: max_peers });
        }
    }
    let policies = [DailyPolicy::Off, DailyPolicy::Prefer, DailyPolicy::Require];
    Some(DirectorySection {
        certificates,
        daily_keys: section
            .choice("daily_keys", &["off", "prefer", "require"], &policies)
            .unwrap_or_default(),
        pin,
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
        let more = format!("{}certificates = \"on demand\"\npin = [\"b\", \"a\", \"b\"]\n", section());
        let read = parse("peers = \"directory\"\n", &more).unwrap().directory.unwrap();
        let pinned: Vec<&str> = read.pin.iter().map(CardName::as_str).collect();
        assert_eq!((read.certificates, pinned), (DirectoryCertificates::OnDemand, vec!["a", "b"]));
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
