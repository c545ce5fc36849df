//! How one program of the project finds another.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::{Code, Failure};

/// The `strait` that runs the tunnels.
#[derive(Debug, Args)]
pub struct TunnelProgram {
    /// The program that runs the tunnels [default: strait beside this program, or else in PATH]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    strait: Option<PathBuf>,
}

impl TunnelProgram {
    /// Its absolute path, as it is run from elsewhere.
    ///
    /// # Errors
    /// A [`Failure`] when the program that was named cannot be found, or none is.
    pub fn path(&self) -> Result<PathBuf, Failure> {
        match &self.strait {
            Some(path) => {
                let doing = || Failure::doing(format!("use {}", path.display()));
                path.metadata().map_err(doing())?;
                std::path::absolute(path).map_err(doing())
            }
            None => find("strait", "strait"),
        }
    }
}

/// The program called `name`: beside this program's own file, or else in `PATH`; `package` is the cargo package that builds it.
///
/// # Errors
/// A [`Failure`] that says where it was looked for and how to get it.
pub fn find(name: &str, package: &str) -> Result<PathBuf, Failure> {
    let this = std::env::current_exe().map_err(Failure::doing("find this program's own file"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(name, this.parent().unwrap_or(Path::new("/")), &path).ok_or_else(|| {
        Failure::new(format!("cannot find {name}: it is neither beside {} nor in PATH", this.display()))
            .remedy(format!("install it, or build it with `cargo build --release --package {package}`"))
            .code(Code::Environment)
    })
}

/// The first file called `name` that may be run, in `beside` or in the folders that `path` lists.
fn find_in(name: &str, beside: &Path, path: &OsStr) -> Option<PathBuf> {
    let listed = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    std::iter::once(beside.to_owned())
        .chain(listed)
        .map(|folder| folder.join(name))
        .find(|file| may_run(file))
}

fn may_run(file: &Path) -> bool {
    file.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use strait_testbed::Workdir;

    #[test]
    fn beside_this_program_goes_before_path() {
        let dir = Workdir::create().unwrap();
        let [beside, listed] = ["beside", "listed"].map(|name| dir.path().join(name));
        for folder in [&beside, &listed] {
            fs::create_dir(folder).unwrap();
        }
        let found = || find_in("tool", &beside, listed.as_os_str());
        fs::create_dir(beside.join("tool")).unwrap();
        fs::write(listed.join("tool"), "").unwrap();
        fs::set_permissions(listed.join("tool"), Permissions::from_mode(0o644)).unwrap();
        assert_eq!(found(), None, "neither a folder nor a file that cannot be run will do");
        fs::set_permissions(listed.join("tool"), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(found(), Some(listed.join("tool")));
        fs::remove_dir(beside.join("tool")).unwrap();
        fs::copy(listed.join("tool"), beside.join("tool")).unwrap();
        assert_eq!(found(), Some(beside.join("tool")));
    }

    #[test]
    fn a_missing_program_is_named_with_how_to_build_it() {
        let said = find("strait-nowhere", "strait-somewhere").unwrap_err().to_string();
        assert!(said.starts_with("cannot find strait-nowhere: it is neither beside /"), "{said}");
        assert!(said.contains("cargo build --release --package strait-somewhere"), "{said}");
    }
}
