//! Debian's packages of programs that Strait is compared with, unpacked beside what is installed.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Gets `packages` and unpacks them into `cache`, beside what is installed.
///
/// # Errors
/// When `apt-get` or `dpkg-deb` is not there or fails; says which.
pub fn unpack(packages: &[&str], cache: &Path) -> io::Result<()> {
    let _ = writeln!(io::stderr(), "  unpacking {} into {}", packages.join(" and "), cache.display());
    fs::create_dir_all(cache)?;
    quiet(Command::new("apt-get").arg("download").args(packages).current_dir(cache))?;
    for entry in fs::read_dir(cache)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|it| it == "deb") {
            quiet(Command::new("dpkg-deb").arg("--extract").args([&path, cache]))?;
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Runs a command whose words are of no use.
pub(super) fn quiet(command: &mut Command) -> io::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(io::Error::other(format!("{program} ended with {status}"))),
        Err(error) => Err(io::Error::other(format!("{program}: {error}"))),
    }
}
