//! `[broker]`: a node that holds sealed objects for others until they fetch them.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::beside::Beside;
use super::checks::FoundPeer;
use super::folder::one_of_the_peers;
use super::problem::Problem;
use super::reader::{Placed, Section};
use super::sections::{span, words};
use super::value;

pub(super) const KEYS: &[&str] = &[
    "store",
    "endpoint",
    "region",
    "allow_http",
    "credentials_file",
    "spool",
    "audit",
    "largest",
    "keep",
    "quota_sender",
    "quota_receiver",
    "letters_sender",
    "letters_receiver",
    "access",
];
pub(super) const ACCESS: &[&str] =
    &["peer", "put", "fetch", "to", "quota_sent", "quota_kept", "letters_sent", "letters_kept"];

/// How a bucket is written.
const BUCKET: &str = "s3://";
/// How long an object stays where the file says nothing: a month, as mail servers keep what is not fetched.
const KEEP: Duration = Duration::from_secs(30 * 24 * 3600);
const KEEP_RANGE: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(3650 * 24 * 3600)];
/// Bytes of one object where the file says nothing.
const LARGEST: u64 = 1 << 40;
/// Letters of one sender, and for one receiver, where the file says nothing: a folder lists them within some milliseconds, and a receiver
/// hears of all in 1.2 MB.
const LETTERS: u64 = 10_000;
/// Ten million letters are 46 GB of blocks.
const LETTERS_RANGE: RangeInclusive<u64> = 1..=10_000_000;
/// Who stands for all peers.
const ALL: &str = "*";

/// `[broker]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerSection {
    /// Where objects are.
    pub store: BrokerStore,
    /// The folder for what is received and not yet in the store; nothing for one in the state folder.
    pub spool: Option<PathBuf>,
    /// The file with a line for each thing that was done; nothing for one in the spool.
    pub audit: Option<PathBuf>,
    /// Bytes of one object at most.
    pub largest: u64,
    /// How long an object stays at most.
    pub keep: Duration,
    /// Bytes of each sender at most, if that is limited.
    pub quota_sender: Option<u64>,
    /// Bytes for each receiver at most, if that is limited.
    pub quota_receiver: Option<u64>,
    /// Letters of each sender at most.
    pub letters_sender: u64,
    /// Letters for each receiver at most.
    pub letters_receiver: u64,
    /// Who may do what. A peer that is not named may do nothing.
    pub access: Vec<BrokerAccess>,
}

/// Where a broker's objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerStore {
    /// In a folder.
    Folder(PathBuf),
    /// In a bucket of a server that speaks S3.
    Bucket(BrokerBucket),
}

/// A bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerBucket {
    /// Its name.
    pub name: String,
    /// What all names in it begin with; may be empty.
    pub prefix: String,
    /// The server; nothing for that of AWS.
    pub endpoint: Option<String>,
    /// The region, if it is said.
    pub region: Option<String>,
    /// Whether the server may be reached without TLS.
    pub allow_http: bool,
    /// The file with the keys to it; nothing for those of the environment.
    pub credentials_file: Option<PathBuf>,
}

/// `[[broker.access]]`: what a peer may do at the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerAccess {
    /// Its name; nothing for all peers that have no section of their own.
    pub peer: Option<String>,
    /// Whether it may put objects there.
    pub put: bool,
    /// Whether objects may be put there for it, and it may fetch them.
    pub fetch: bool,
    /// To whom it may put objects; nothing for all who may fetch.
    pub to: Option<Vec<String>>,
    /// Bytes of it at most, in place of [`BrokerSection::quota_sender`].
    pub quota_sent: Option<u64>,
    /// Bytes for it at most, in place of [`BrokerSection::quota_receiver`].
    pub quota_kept: Option<u64>,
    /// Letters of it at most, in place of [`BrokerSection::letters_sender`].
    pub letters_sent: Option<u64>,
    /// Letters for it at most, in place of [`BrokerSection::letters_receiver`].
    pub letters_kept: Option<u64>,
}

impl BrokerSection {
    /// What the peer called `name` may do: its own section, or that for all.
    #[must_use]
    pub fn access_of(&self, name: &str) -> Option<&BrokerAccess> {
        let of = |wanted: Option<&str>| self.access.iter().find(|access| access.peer.as_deref() == wanted);
        of(Some(name)).or_else(|| of(None))
    }
}

pub(super) fn broker(
    section: &Section<'_>,
    beside: &Beside<'_>,
    peers: &[FoundPeer],
) -> Option<BrokerSection> {
    section.require("store", "store = \"/var/lib/strait/broker\"");
    let path = |key| {
        let path = |text: &str| Ok::<_, Problem>(beside.path(text));
        section.parsed(key, "a path in quotes", path).map(|path| path.value)
    };
    let (spool, audit) = (path("spool"), path("audit"));
    let [least, most] = KEEP_RANGE;
    Some(BrokerSection {
        spool,
        audit,
        largest: size(section, "largest").unwrap_or(LARGEST),
        keep: span(section, "keep", least, most, ["1m", "3650d"]).unwrap_or(KEEP),
        quota_sender: size(section, "quota_sender"),
        quota_receiver: size(section, "quota_receiver"),
        letters_sender: section.integer("letters_sender", LETTERS_RANGE).unwrap_or(LETTERS),
        letters_receiver: section.integer("letters_receiver", LETTERS_RANGE).unwrap_or(LETTERS),
        access: access(section, peers),
        store: store(section, beside)?,
    })
}

fn size(section: &Section<'_>, key: &str) -> Option<u64> {
    let read = |text: &str| value::size(text).map_err(Problem::from);
    section.parsed(key, "a size in quotes, as \"10GiB\"", read).map(|size| size.value)
}

fn store(section: &Section<'_>, beside: &Beside<'_>) -> Option<BrokerStore> {
    let text = |key| {
        section.parsed(key, "text in quotes", |text| words(key, text)).map(|text: Placed<String>| text.value)
    };
    let (endpoint, region) = (text("endpoint"), text("region"));
    let allow_http = section.boolean("allow_http").unwrap_or(false);
    let file = |text: &str| Ok::<_, Problem>(beside.path(text));
    let credentials_file = section.parsed("credentials_file", "the name of a file in quotes", file);
    let place = section.parsed("store", "the name of a folder, or \"s3://BUCKET/PREFIX\"", |text| {
        let Some(rest) = text.strip_prefix(BUCKET) else { return Ok(None) };
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if name.is_empty() || prefix.split('/').any(|part| part == "." || part == "..") {
            return Err(Problem::Bucket { given: text.to_owned() });
        }
        Ok(Some((name.to_owned(), prefix.trim_matches('/').to_owned())))
    })?;
    let Some((name, prefix)) = place.value else {
        for key in ["endpoint", "region", "allow_http", "credentials_file"] {
            if let Some(value) = section.value(key) {
                section.note(value.span(), Problem::BucketOnly { key });
            }
        }
        let folder = section.value("store").and_then(|value| value.get_ref().as_str())?;
        return Some(BrokerStore::Folder(beside.path(folder)));
    };
    Some(BrokerStore::Bucket(BrokerBucket {
        name,
        prefix,
        endpoint,
        region,
        allow_http,
        credentials_file: credentials_file.map(|file| file.value),
    }))
}

fn access(section: &Section<'_>, peers: &[FoundPeer]) -> Vec<BrokerAccess> {
    let mut seen: Vec<(Option<String>, usize)> = Vec::new();
    let sections = section.many("access", "[[broker.access]]", ACCESS);
    sections.iter().filter_map(|section| one_access(section, peers, &mut seen)).collect()
}

fn one_access(
    section: &Section<'_>,
    peers: &[FoundPeer],
    seen: &mut Vec<(Option<String>, usize)>,
) -> Option<BrokerAccess> {
    section.require("peer", "peer = \"site-b\"");
    let whose = |name: &str| {
        if name == ALL { Ok(None) } else { one_of_the_peers(name, peers).map(Some) }
    };
    let peer = section.parsed("peer", "a peer's name in quotes, or \"*\"", whose);
    if let Some(Placed { value, span }) = &peer {
        match seen.iter().find(|(other, _)| other == value) {
            Some((_, line)) => section.note(span.clone(), Problem::DuplicateAccess { line: *line }),
            None => seen.push((value.clone(), section.line())),
        }
    }
    let to =
        section.list("to", "a list of peers' names, as [\"site-b\"]", |name| one_of_the_peers(name, peers));
    let to = to.into_iter().map(|name| name.value).collect();
    Some(BrokerAccess {
        put: section.boolean("put").unwrap_or(true),
        fetch: section.boolean("fetch").unwrap_or(true),
        to: section.value("to").is_some().then_some(to),
        quota_sent: size(section, "quota_sent"),
        quota_kept: size(section, "quota_kept"),
        letters_sent: section.integer("letters_sent", LETTERS_RANGE),
        letters_kept: section.integer("letters_kept", LETTERS_RANGE),
        peer: peer?.value,
    })
}
