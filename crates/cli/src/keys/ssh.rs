//! `keys ssh`: keys from and to the files of OpenSSH.

use std::path::{Path, PathBuf};

use strait_keying::{OpenSshError, PrivateKey, PublicKey};

use super::{read_private, read_text, seed, write_new};
use crate::failure::{CommandResult, Failure};
use crate::flags;
use crate::output::line;

/// An `id_ed25519` has some 400 bytes and a comment; more than this is another file.
const FILE_MAX: u64 = 16 * 1024;
/// What stands behind the key in the files that are made.
const COMMENT: &str = "strait";

/// Converts keys.
pub(super) fn run(command: &flags::SshCommand) -> CommandResult {
    match command {
        flags::SshCommand::Import(flags) => import(flags),
        flags::SshCommand::Export(flags) => export(flags),
        flags::SshCommand::Public(flags) => {
            let key: PublicKey =
                flags.key.parse().map_err(|error| Failure::new(format!("the key {error}")))?;
            line(key.to_openssh(""))?;
            Ok(())
        }
    }
}

fn import(flags: &flags::SshImport) -> CommandResult {
    let text = read_text(&flags.file, FILE_MAX)?;
    if text.starts_with("-----BEGIN") {
        let key = PrivateKey::from_openssh(&text).map_err(refused(&flags.file))?;
        write_new(&flags.out, 0o600, &[key.expose().as_bytes(), b"\n"])?;
        line(format_args!(
            "private key: {} (readable by you only; never leaves this machine)",
            flags.out.display()
        ))?;
        line(format_args!("public key:  {}", key.public()))?;
    } else {
        line(PublicKey::from_openssh(&text).map_err(refused(&flags.file))?)?;
    }
    Ok(())
}

fn export(flags: &flags::SshExport) -> CommandResult {
    let key = read_private(&flags.file)?;
    let random = seed().map_err(Failure::doing("read random numbers from the system"))?;
    let check = u32::from_be_bytes([random[0], random[1], random[2], random[3]]);
    let text = key.to_openssh(check, COMMENT);
    let mut public = flags.out.clone().into_os_string();
    public.push(".pub");
    let public = PathBuf::from(public);
    write_new(&flags.out, 0o600, &[text.as_bytes()])?;
    write_new(&public, 0o644, &[key.public().to_openssh(COMMENT).as_bytes(), b"\n"])?;
    line(format_args!(
        "private key: {} (readable by you only; never leaves this machine)",
        flags.out.display()
    ))?;
    line(format_args!("public key:  {}", public.display()))?;
    Ok(())
}

fn refused(file: &Path) -> impl FnOnce(OpenSshError) -> Failure + use<> {
    let file = file.display().to_string();
    move |error| {
        Failure::new(format!("{file} {error}"))
            .remedy("make one with `ssh-keygen -t ed25519`, without a passphrase")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_testbed::Workdir;

    #[test]
    fn a_key_goes_to_openssh_and_back_and_nothing_is_overwritten() {
        let dir = Workdir::create().unwrap();
        let path = |name: &str| dir.path().join(name);
        let public = super::super::make(&path("a.key")).unwrap();
        let to = flags::SshExport { file: path("a.key"), out: path("id") };
        export(&to).unwrap();
        let back = flags::SshImport { file: path("id"), out: path("b.key") };
        import(&back).unwrap();
        assert_eq!(super::super::read(&path("b.key")).unwrap(), public);
        let line = std::fs::read_to_string(path("id.pub")).unwrap();
        assert_eq!(PublicKey::from_openssh(&line), Ok(public));
        for failure in [export(&to), import(&back)] {
            assert!(failure.unwrap_err().to_string().contains("already exists"));
        }
    }

    #[test]
    fn what_is_no_such_key_is_explained() {
        let dir = Workdir::create().unwrap();
        let file = dir.path().join("id");
        std::fs::write(&file, "ssh-rsa AAAA").unwrap();
        let failure =
            import(&flags::SshImport { file, out: dir.path().join("a.key") }).unwrap_err().to_string();
        assert!(failure.contains("another kind") && failure.contains("ssh-keygen"), "{failure}");
    }
}
