//! A program that finds files of its own at places of the system's, in a mount namespace; the machine's files stay as they are.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::Error;

/// Makes `wrapper`, a program that runs `program` after the shell's commands `setup`, which may mount what they like.
///
/// # Errors
/// [`Error::System`] when it cannot be written.
pub fn program_with_mounts(program: &Path, wrapper: &Path, setup: &str) -> Result<(), Error> {
    // As `sh` sees the arguments: the variable tells the second run of the script from the first.
    let script = format!(
        "#!/bin/sh\nset -e\nif [ -z \"$STRAIT_TEST_OWN\" ]; then export STRAIT_TEST_OWN=1; exec unshare --mount --propagation \
         private \"$0\" \"$@\"; fi\nunset STRAIT_TEST_OWN\n{setup}\nexec '{}' \"$@\"\n",
        program.display()
    );
    let written = fs::write(wrapper, script);
    let written = written.and_then(|()| fs::set_permissions(wrapper, Permissions::from_mode(0o755)));
    written.map_err(Error::doing(format!("write {}", wrapper.display())))
}
