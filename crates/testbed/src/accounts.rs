//! A program that may give this machine's accounts to peers: it finds a PAM service of its own, in a mount namespace; the machine's
//! files stay as they are.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::Error;

/// What PAM asks: as packaging/pam.d/strait, without modules that talk to the system's services.
const SERVICE: &str =
    "auth required pam_permit.so\naccount required pam_unix.so\nsession required pam_limits.so\n";

/// Makes a program in the folder `dir` that runs `program` so.
///
/// # Errors
/// [`Error::System`] when its files cannot be written.
pub fn program_with_accounts(program: &Path, dir: &Path) -> Result<PathBuf, Error> {
    let wrapper = dir.join("strait-with-accounts");
    write(program, dir, &wrapper).map_err(Error::doing("write a PAM service"))?;
    Ok(wrapper)
}

fn write(program: &Path, dir: &Path, wrapper: &Path) -> io::Result<()> {
    let services = dir.join("pam.d");
    fs::create_dir(&services)?;
    fs::write(services.join("strait"), SERVICE)?;
    // As `sh` sees the arguments: the variable tells the second run of the script from the first.
    let script = format!(
        "#!/bin/sh\nset -e\nif [ -z \"$STRAIT_TEST_OWN\" ]; then export STRAIT_TEST_OWN=1; exec unshare --mount --propagation \
         private \"$0\" \"$@\"; fi\nunset STRAIT_TEST_OWN\nmount --bind '{}' /etc/pam.d\nexec '{}' \"$@\"\n",
        services.display(),
        program.display()
    );
    fs::write(wrapper, script)?;
    fs::set_permissions(wrapper, Permissions::from_mode(0o755))
}
