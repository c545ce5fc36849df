//! A program that may give this machine's accounts to peers: it finds a PAM service of its own, in a mount namespace; the machine's
//! files stay as they are.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::mounts::program_with_mounts;

/// What PAM asks: as packaging/pam.d/strait, without modules that talk to the system's services.
const SERVICE: &str =
    "auth required pam_permit.so\naccount required pam_unix.so\nsession required pam_limits.so\n";

/// Makes a program in the folder `dir` that runs `program` so.
///
/// # Errors
/// [`Error::System`] when its files cannot be written.
pub fn program_with_accounts(program: &Path, dir: &Path) -> Result<PathBuf, Error> {
    let services = dir.join("pam.d");
    let written = fs::create_dir(&services).and_then(|()| fs::write(services.join("strait"), SERVICE));
    written.map_err(Error::doing("write a PAM service"))?;
    let wrapper = dir.join("strait-with-accounts");
    let mount = format!("mount --bind '{}' /etc/pam.d", services.display());
    program_with_mounts(program, &wrapper, &mount)?;
    Ok(wrapper)
}
