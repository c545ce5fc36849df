//! What a killed daemon leaves, in a file beside its socket, until the next start or `strait down`.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ipnet::IpNet;

use super::plan::{Lookup, Plan};
use super::setting::Setting;
use crate::runtime::{self, RuntimeError};

/// The network namespace of this process: what is in another one is not there to be put back.
const NAMESPACE: &str = "/proc/thread-self/ns/net";
pub(super) const SUFFIX: &str = "undo";
/// First words of lines.
const TABLE: &str = "table";
const OUTSIDE: &str = "outside";
const LOCKDOWN: &str = "lockdown";
const RESOLVCONF: &str = "resolvconf";

/// What keeps packets from leaving in the clear and outlives a daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Leftovers {
    /// Tables with unreachable routes, each with rules for the mark of its number.
    pub(super) tables: BTreeSet<u32>,
    /// Networks with a rule each.
    pub(super) outside: BTreeSet<IpNet>,
    /// Whether there is a lockdown table in the packet filter.
    pub(super) lockdown: bool,
    /// What resolvconf calls the interface, if it has name servers of it.
    pub(super) resolvconf: Option<String>,
}

impl Leftovers {
    /// What a tunnel with `plan` would leave.
    pub(super) fn of(plan: &Plan) -> Leftovers {
        let outside = plan.rules.iter().filter_map(|rule| match rule.lookup {
            Lookup::Outside(net) => Some(net),
            Lookup::MainBeyond(_) | Lookup::TunnelFrom(_) | Lookup::Dhcp => None,
        });
        Leftovers {
            tables: plan.rules.iter().map(|rule| rule.mark).collect(),
            outside: outside.collect(),
            lockdown: plan.lockdown,
            resolvconf: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Leftovers::default()
    }

    pub(super) fn extend(&mut self, other: Leftovers) {
        self.tables.extend(other.tables);
        self.outside.extend(other.outside);
        self.lockdown |= other.lockdown;
        self.resolvconf = other.resolvconf.or(self.resolvconf.take());
    }

    fn lines(&self) -> String {
        let tables = self.tables.iter().map(|table| format!("{TABLE}\t{table}\n"));
        let outside = self.outside.iter().map(|net| format!("{OUTSIDE}\t{net}\n"));
        let lockdown = self.lockdown.then(|| format!("{LOCKDOWN}\n"));
        let resolvconf = self.resolvconf.iter().map(|name| format!("{RESOLVCONF}\t{name}\n"));
        tables.chain(outside).chain(lockdown).chain(resolvconf).collect()
    }

    /// Takes a line of [`Leftovers::lines`]; others are ignored.
    fn take(&mut self, line: &str) {
        let (word, value) = line.split_once('\t').unwrap_or((line, ""));
        match word {
            TABLE => self.tables.extend(value.parse::<u32>()),
            OUTSIDE => self.outside.extend(value.parse::<IpNet>()),
            LOCKDOWN => self.lockdown = true,
            RESOLVCONF => self.resolvconf = Some(value.to_owned()),
            _ => {}
        }
    }
}

/// Where what was changed is written down, if anywhere.
#[derive(Debug)]
pub(super) struct UndoFile(Option<PathBuf>);

impl UndoFile {
    /// Puts back the settings that an earlier daemon wrote down, and gives the rest.
    pub(super) fn open(path: Option<PathBuf>) -> (UndoFile, Leftovers) {
        let (count, left) = path.as_deref().map(put_back_from).unwrap_or_default();
        if count > 0 {
            tracing::info!(count, "put back kernel settings of an earlier run");
        }
        let file = UndoFile(path);
        file.write(&[], &left);
        (file, left)
    }

    /// Writes down `settings` and `left` in place of those before; without any, there is no file.
    pub(super) fn write(&self, settings: &[Setting], left: &Leftovers) {
        let Some(path) = &self.0 else { return };
        let nothing = settings.is_empty() && left.is_empty();
        let written = if nothing { remove(path) } else { write(path, settings, left) };
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "cannot write down what to put back after a crash");
        }
    }
}

fn write(path: &Path, settings: &[Setting], left: &Leftovers) -> io::Result<()> {
    let lines: String = settings.iter().map(Setting::line).chain([left.lines()]).collect();
    let text = format!("{}\n{lines}", namespace()?);
    let fresh = path.with_extension("new");
    remove(&fresh)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&fresh, path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn namespace() -> io::Result<String> {
    Ok(fs::read_link(NAMESPACE)?.display().to_string())
}

/// Puts back the settings of the file, the last first, unless another program has changed them since; says how many, and
/// what else is left. The file is gone then.
pub(super) fn put_back_from(path: &Path) -> (usize, Leftovers) {
    let (mut count, mut left) = (0, Leftovers::default());
    let Ok(text) = fs::read_to_string(path) else { return (count, left) };
    let (whose, lines) = text.split_once('\n').unwrap_or_default();
    if namespace().is_ok_and(|own| own == whose) {
        for setting in lines.lines().rev().filter_map(Setting::from_line).filter(Setting::holds) {
            count += usize::from(setting.restore().is_ok());
        }
        lines.lines().for_each(|line| left.take(line));
    }
    if let Err(error) = remove(path) {
        tracing::warn!(path = %path.display(), %error, "cannot remove the file of what to put back");
    }
    (count, left)
}

/// The file for `interface` in the folder of sockets.
///
/// # Errors
/// [`RuntimeError`] where there is no such folder.
pub(crate) fn file(interface: &str) -> Result<PathBuf, RuntimeError> {
    Ok(runtime::folder()?.join(format!("{interface}.{SUFFIX}")))
}
