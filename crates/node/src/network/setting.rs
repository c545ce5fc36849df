//! A kernel setting that is put back when it is no longer wanted.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::plan::SysctlSetting;

/// A setting that is not what the system had, with what it was before.
#[derive(Debug)]
pub(super) struct Setting {
    path: PathBuf,
    before: String,
    value: String,
}

impl Setting {
    /// The setting, not changed yet; nothing when it has this value already, and so is not ours to put back.
    pub(super) fn find(wanted: &SysctlSetting) -> io::Result<Option<Setting>> {
        let before = read(&wanted.path)?;
        let differs = before != wanted.value;
        Ok(differs.then(|| Setting { path: wanted.path.clone(), before, value: wanted.value.to_owned() }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Changes it, if it is not what it should be.
    pub(super) fn ensure(&self) -> io::Result<()> {
        if read(&self.path)? == self.value { Ok(()) } else { fs::write(&self.path, &self.value) }
    }

    /// An interface is called `to` that was `from`, and its folder with it.
    pub(super) fn follow(&mut self, from: &str, to: &str) {
        for family in ["ipv4", "ipv6"] {
            let folder = Path::new("/proc/sys/net").join(family).join("conf");
            if let Ok(rest) = self.path.strip_prefix(folder.join(from)) {
                self.path = folder.join(to).join(rest);
                return;
            }
        }
    }

    pub(super) fn restore(self) -> io::Result<()> {
        match fs::write(&self.path, &self.before) {
            // With the interface its settings are gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// As a line of a file.
    pub(super) fn line(&self) -> String {
        format!("{}\t{}\t{}\n", self.path.display(), self.before, self.value)
    }

    /// Reads [`Setting::line`]; nothing but a setting of the network.
    pub(super) fn from_line(line: &str) -> Option<Setting> {
        let mut parts = line.split('\t').map(str::to_owned);
        let (path, before, value) = (PathBuf::from(parts.next()?), parts.next()?, parts.next()?);
        let normal = path.components().all(|part| part != std::path::Component::ParentDir);
        (normal && path.starts_with("/proc/sys/net")).then_some(Setting { path, before, value })
    }

    /// Whether it has still the value that it was given.
    pub(super) fn holds(&self) -> bool {
        read(&self.path).is_ok_and(|now| now == self.value)
    }
}

fn read(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}
