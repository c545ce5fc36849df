//! `[[folder]]`: what of this host's files peers may read and write.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::DeValue;

use super::beside::Beside;
use super::checks::FoundPeer;
use super::problem::Problem;
use super::reader::{Placed, Section};
use super::sections::words;
use super::value;

pub(super) const KEYS: &[&str] = &[
    "name",
    "path",
    "read",
    "write",
    "delete",
    "symlinks",
    "owner",
    "on_receive",
    "max_bytes",
    "max_entries",
];

/// Most arguments of a command, and most bytes of each: more than any has that a person writes.
const ARGUMENTS_MAX: usize = 64;
const ARGUMENT_MAX: usize = 4096;

/// `[[folder]]`: a place that peers may read or write. Who is not named may do neither.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderSection {
    /// The name that peers know.
    pub name: String,
    /// Where it is, relative names resolved against the configuration's folder.
    pub path: PathBuf,
    /// The names of the peers that may read.
    pub read: Vec<String>,
    /// The names of the peers that may write: add what is not there, and replace what is.
    pub write: Vec<String>,
    /// The names of the peers, which may write, that may remove.
    pub delete: Vec<String>,
    /// The rule for symlinks of peers there.
    pub symlinks: FolderSymlinks,
    /// As whom files are read and written, by name; nothing for the user whom the folder belongs to.
    pub owner: Option<String>,
    /// The program, and its arguments, that is run there when a transfer has arrived; empty for none.
    pub on_receive: Vec<String>,
    /// Bytes of all that is in it, at most.
    pub max_bytes: Option<u64>,
    /// Names of all that is in it, at most.
    pub max_entries: Option<u64>,
}

/// A rule for the symlinks of peers in a folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FolderSymlinks {
    /// Those that lead to no place outside of it.
    #[default]
    Inside,
    /// All, as they are.
    Any,
    /// None.
    None,
}

impl FolderSection {
    /// True if a peer may read or write; for others the folder is not there.
    #[must_use]
    pub fn is_for(&self, peer: &String) -> bool {
        self.read.contains(peer) || self.write.contains(peer)
    }
}

pub(super) fn folders(
    sections: &[Section<'_>],
    beside: &Beside<'_>,
    peers: &[FoundPeer],
) -> Vec<FolderSection> {
    let mut seen: Vec<(String, usize)> = Vec::new();
    let found = |section| Some((section, folder(section, beside, peers, &mut seen)?));
    let folders: Vec<(&Section<'_>, FolderSection)> = sections.iter().filter_map(found).collect();
    for (section, inner) in &folders {
        let holds = |outer: &FolderSection| outer.name != inner.name && inner.path.starts_with(&outer.path);
        let outer = folders.iter().find(|(_, outer)| holds(outer) && !outer.write.is_empty());
        if let Some((at, outer)) = outer
            && let Some(peer) = outer.write.first()
            && let Some(path) = section.value("path")
        {
            let (name, peer) = (outer.name.clone(), peer.clone());
            section.note(path.span(), Problem::NestedFolder { name, line: at.line(), peer });
        }
    }
    folders.into_iter().map(|(_, folder)| folder).collect()
}

fn folder(
    section: &Section<'_>,
    beside: &Beside<'_>,
    peers: &[FoundPeer],
    seen: &mut Vec<(String, usize)>,
) -> Option<FolderSection> {
    section.require("name", "name = \"inbox\"");
    section.require("path", "path = \"/srv/inbox\"");
    let name = section.parsed("name", "a name in quotes", name);
    if let Some(Placed { value, span }) = &name {
        match seen.iter().find(|(other, _)| other == value) {
            Some((name, line)) => {
                section.note(span.clone(), Problem::DuplicateFolder { name: name.clone(), line: *line });
            }
            None => seen.push((value.clone(), section.line())),
        }
    }
    let path =
        section.parsed("path", "the name of a folder in quotes", |text| Ok::<_, Problem>(beside.path(text)));
    let size = section.parsed("max_bytes", "a size in quotes, as \"10GiB\"", |text| {
        value::size(text).map_err(Problem::from)
    });
    let owner = section.parsed("owner", "a name in quotes", |name| words("owner", name));
    let (read, write) = (named(section, "read", peers), named(section, "write", peers));
    let symlinks = [FolderSymlinks::Inside, FolderSymlinks::Any, FolderSymlinks::None];
    Some(FolderSection {
        delete: deleting(section, &read, &write, peers),
        symlinks: section.choice_or("symlinks", &["inside", "any", "none"], &symlinks).unwrap_or_default(),
        read,
        write,
        owner: owner.map(|owner| owner.value),
        on_receive: command(section),
        max_bytes: size.map(|size| size.value),
        max_entries: section.integer("max_entries", 1..=u64::MAX),
        name: name?.value,
        path: path?.value,
    })
}

/// A name as addresses have it: `PEER:NAME/PATH`.
fn name(text: &str) -> Result<String, Problem> {
    let name = words("name", text)?;
    if name.contains(['/', ':']) { Err(Problem::FolderName { name }) } else { Ok(name) }
}

/// Peers by their names, each of which has to be in the file.
fn named(section: &Section<'_>, key: &'static str, peers: &[FoundPeer]) -> Vec<String> {
    section
        .list(key, "a list of peers' names, as [\"site-b\"]", |name| one_of_the_peers(name, peers))
        .into_iter()
        .map(|it| it.value)
        .collect()
}

/// The peers that may remove: without a list, those that may read and write. Who may not read would learn names from what it removes.
fn deleting(section: &Section<'_>, read: &[String], write: &[String], peers: &[FoundPeer]) -> Vec<String> {
    if section.value("delete").is_none() {
        return write.iter().filter(|peer| read.contains(peer)).cloned().collect();
    }
    let may = |name: &str| {
        let name = one_of_the_peers(name, peers)?;
        if write.contains(&name) { Ok(name) } else { Err(Problem::DeleteWithoutWrite { peer: name }) }
    };
    let listed = section.list("delete", "a list of peers' names, as [\"site-b\"]", may);
    listed.into_iter().map(|it| it.value).collect()
}

/// The name of a peer that is in the file.
pub(super) fn one_of_the_peers(name: &str, peers: &[FoundPeer]) -> Result<String, Problem> {
    let of = |peer: &FoundPeer| peer.peer.as_ref().is_some_and(|peer| peer.name == name);
    // A peer that could not be read has been complained about.
    if peers.iter().any(of) || peers.iter().any(|peer| peer.peer.is_none()) {
        Ok(name.to_owned())
    } else {
        Err(Problem::NoPeer { name: name.to_owned() })
    }
}

/// A program and its arguments, each as it is.
fn command(section: &Section<'_>) -> Vec<String> {
    const WANTED: &str = "a list of a program and its arguments, as [\"/usr/local/bin/import\", \"--fast\"]";
    let items = section.items("on_receive");
    let fits = |text: &str| !text.is_empty() && text.len() <= ARGUMENT_MAX && !text.contains('\0');
    let read = |item: &&Spanned<DeValue<'_>>| match item.get_ref().as_str() {
        Some(text) if fits(text) => Some(text.to_owned()),
        _ => {
            section.wrong_type("on_receive", WANTED, item);
            None
        }
    };
    if items.len() > ARGUMENTS_MAX
        && let Some(item) = items.last()
    {
        section.wrong_type("on_receive", WANTED, item);
    }
    items.iter().filter_map(read).collect()
}
