//! Where wireguard-go is, or how it gets there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The names it is installed under: a distribution's, and Go's.
const NAMES: [&str; 2] = ["wireguard-go", "wireguard"];
const MODULE: &str = "golang.zx2c4.com/wireguard@latest";

/// What came of looking for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WireguardSearch {
    /// It is there.
    Here {
        /// The program.
        program: PathBuf,
        /// What it calls itself.
        version: String,
    },
    /// It is not, for this reason.
    Missing(String),
}

/// Looks in the search path, where Go installs, and in `cache`; installs it into `cache` if Go is here.
pub(crate) fn find(cache: &Path) -> WireguardSearch {
    if let Some(found) = look(cache) {
        return found;
    }
    if output("go", &["version"]).is_none() {
        return WireguardSearch::Missing("there is no wireguard-go, and no go to install it with".to_owned());
    }
    install(cache)
}

/// Where it is, if it is installed.
pub(super) fn look(cache: &Path) -> Option<WireguardSearch> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(go_folder()).chain([cache.to_owned()]);
    folders.flat_map(|folder| NAMES.map(|name| folder.join(name))).find_map(|program| examine(&program))
}

fn install(cache: &Path) -> WireguardSearch {
    eprintln!("  installing {MODULE} into {}", cache.display());
    let done = Command::new("go").args(["install", MODULE]).env("GOBIN", cache).stdin(Stdio::null()).status();
    let found = NAMES.iter().find_map(|name| examine(&cache.join(name)));
    match (found, done) {
        (Some(found), _) => found,
        (None, Ok(status)) => WireguardSearch::Missing(format!("`go install {MODULE}` ended with {status}")),
        (None, Err(error)) => WireguardSearch::Missing(format!("`go install {MODULE}`: {error}")),
    }
}

/// The program, if it is wireguard-go: others may be called `wireguard` too.
fn examine(program: &Path) -> Option<WireguardSearch> {
    let said = program.is_file().then(|| output(program.to_str()?, &["--version"]))??;
    let version = said.lines().next()?.trim().to_owned();
    version
        .starts_with("wireguard-go")
        .then(|| WireguardSearch::Here { program: program.to_owned(), version })
}

/// Where `go install` puts programs.
fn go_folder() -> Option<PathBuf> {
    let path = output("go", &["env", "GOPATH"])?;
    Some(Path::new(path.trim()).join("bin"))
}

fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use strait_testbed::Workdir;

    use super::*;

    #[test]
    fn another_program_of_the_same_name_is_passed_over() {
        let dir = Workdir::create().unwrap();
        for (name, says, ours) in
            [("wireguard", "wireguard-tools v1", false), ("wireguard-go", "wireguard-go v0.0.2\nmore", true)]
        {
            let program = dir.path().join(name);
            fs::write(&program, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let expected = ours.then(|| WireguardSearch::Here {
                program: program.clone(),
                version: "wireguard-go v0.0.2".to_owned(),
            });
            assert_eq!(examine(&program), expected);
        }
        assert_eq!(examine(&dir.path().join("nothing")), None);
    }
}
