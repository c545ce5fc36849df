//! Nodes of tunnels with manual keys, which are no secrets here.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use strait_testbed::Namespace;

use crate::error::Error;

/// A key of so many bytes, as a configuration has it.
pub(crate) fn key(len: usize, byte: u8) -> String {
    format!("0x{}", format!("{byte:02x}").repeat(len))
}

/// Writes a configuration into a folder of its own; it has keys.
pub(crate) fn written(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Error> {
    let folder = folder.join(name);
    let path = folder.join("tunnel.toml");
    let write = || {
        DirBuilder::new().mode(0o700).recursive(true).create(&folder)?;
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())
    };
    write().map_err(Error::doing(format!("write {}", path.display())))?;
    Ok(path)
}

/// True if a program takes a configuration, such as one with the algorithms of the papers' time.
pub(crate) fn is_taken(program: &Path, host: &Namespace, path: &Path) -> Result<bool, Error> {
    let checked = host.command(program).arg("check").arg(path).output();
    Ok(checked.map_err(Error::doing(format!("run {} check", program.display())))?.status.success())
}
