//! `keygen`, `pubkey` and `keys`.

mod card;
mod ssh;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use strait_keying::{PrivateKey, PublicKey};
use zeroize::Zeroizing;

use crate::failure::{CommandResult, Failure};
use crate::flags;
use crate::output::line;

/// A key file has 45 bytes; more than this is another file.
const FILE_MAX: u64 = 1024;

/// Does what is to be done with keys.
pub(crate) fn run(flags: &flags::Keys) -> CommandResult {
    match &flags.command {
        flags::KeysCommand::Ssh(command) => ssh::run(command),
        flags::KeysCommand::Card(flags) => card::run(flags),
    }
}

/// Makes a key in a new file and says where, and what others need to know.
pub(crate) fn keygen(flags: &flags::Keygen) -> CommandResult {
    let public = make(&flags.out)?;
    line(format_args!(
        "private key: {} (readable by you only; never leaves this machine)",
        flags.out.display()
    ))?;
    line(format_args!("public key:  {public}"))?;
    Ok(())
}

/// Prints the public key of a private key file.
pub(crate) fn pubkey(flags: &flags::Pubkey) -> CommandResult {
    line(read(&flags.file)?)?;
    Ok(())
}

/// A new key in a new file; an existing file stays as it is.
pub(crate) fn make(path: &Path) -> Result<PublicKey, Failure> {
    let key = PrivateKey::generate(&*seed().map_err(Failure::doing("read random numbers from the system"))?);
    let text = key.expose();
    write_new(path, 0o600, &[text.as_bytes(), b"\n"])?;
    Ok(key.public())
}

/// Writes a new file; an existing one stays as it is.
fn write_new(path: &Path, mode: u32, parts: &[&[u8]]) -> CommandResult {
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(mode).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Failure::new(format!("{} already exists and is not overwritten", path.display()))
                .remedy("name another file with `--out`, or move this one first"));
        }
        result => result.map_err(Failure::doing(format!("make {}", path.display())))?,
    };
    let written = parts.iter().try_for_each(|part| file.write_all(part));
    written.and_then(|()| file.sync_all()).map_err(Failure::doing(format!("write {}", path.display())))
}

/// Where a key came from.
#[derive(Debug)]
pub(crate) enum Found {
    /// It is new.
    Made(PublicKey),
    /// It was there.
    There(PublicKey),
}

/// The key in a file, which is made if there is none.
pub(crate) fn make_or_read(path: &Path) -> Result<Found, Failure> {
    if path.exists() { read(path).map(Found::There) } else { make(path).map(Found::Made) }
}

/// The public key that belongs to the private key in a file.
pub(crate) fn read(path: &Path) -> Result<PublicKey, Failure> {
    read_private(path).map(|key| key.public())
}

/// What a file says, as far as a key file may be long.
fn read_text(path: &Path, max: u64) -> Result<Zeroizing<String>, Failure> {
    let mut text = Zeroizing::new(String::with_capacity(1 + usize::try_from(max).unwrap_or(0)));
    File::open(path)
        .and_then(|file| file.take(max).read_to_string(&mut text))
        .map_err(Failure::doing(format!("read {}", path.display())))?;
    Ok(text)
}

/// The private key in a file.
pub(crate) fn read_private(path: &Path) -> Result<PrivateKey, Failure> {
    let text = read_text(path, FILE_MAX)?;
    text.parse().map_err(|error| {
        Failure::new(format!("{} holds no private key: it {error}", path.display()))
            .remedy("make one with `strait keygen`")
    })
}

/// 32 bytes of the system's randomness.
pub(crate) fn seed() -> io::Result<Zeroizing<[u8; 32]>> {
    let mut seed = Zeroizing::new([0; 32]);
    File::open("/dev/urandom")?.read_exact(&mut *seed)?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use strait_testbed::Workdir;

    #[test]
    fn a_made_key_is_private_and_reads_back() {
        let dir = Workdir::create().unwrap();
        let path = dir.path().join("a.key");
        let public = make(&path).unwrap();
        assert_eq!(read(&path).unwrap(), public);
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.mode() & 0o777, 0o600);
        assert_eq!(metadata.size(), 45);
        assert_ne!(make(&dir.path().join("b.key")).unwrap(), public);
    }

    #[test]
    fn nothing_is_ever_overwritten() {
        let dir = Workdir::create().unwrap();
        let path = dir.path().join("a.key");
        std::fs::write(&path, "precious").unwrap();
        let failure = make(&path).unwrap_err().to_string();
        assert!(failure.contains("already exists"), "{failure}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn what_is_no_key_is_explained() {
        let dir = Workdir::create().unwrap();
        let path = dir.path().join("a.key");
        assert!(read(&path).unwrap_err().to_string().contains("No such file"));
        for text in ["", "short", &"x".repeat(5000), "\u{e4}".repeat(22).as_str()] {
            std::fs::write(&path, text).unwrap();
            let failure = read(&path).unwrap_err().to_string();
            assert!(failure.contains("holds no private key") && failure.contains("keygen"), "{failure}");
        }
        std::fs::write(&path, [0xff; 45]).unwrap();
        assert!(read(&path).is_err());
    }
}
