//! A configuration with the keys that it names, as one process reads it for another that may open no file.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use strait_keying::PublicKey;
use strait_keying::sessionless::KemKey;
use zeroize::Zeroizing;

use super::beside::{Access, Files, OnDisk};
use super::{Config, ConfigError, FILE_MAX, KeyFileError, kem_key_file, sections};

/// Most files with manual keys, four for each of some ten thousand peers, and most bytes of a name or a key.
const KEYS_MAX: u64 = 65_536;
const KEY_MAX: u64 = 8192;

/// The text of a configuration, whose it is, and the keys in files of their own: manual keys, and the node's ML-KEM key. The private
/// key and the token, which only a start reads, are not in it.
pub(crate) struct HandedConfig {
    access: Access,
    text: Zeroizing<String>,
    keys: BTreeMap<PathBuf, Zeroizing<String>>,
}

impl HandedConfig {
    /// Reads and checks the file at `path` for a node that runs with the private key of `known`.
    ///
    /// # Errors
    /// [`ConfigError`] with everything that is wrong.
    pub(crate) fn read(
        path: &Path,
        known: Option<(PathBuf, PublicKey)>,
    ) -> Result<(HandedConfig, Config), ConfigError> {
        let (text, access) = super::read(path)?;
        let files = Noted { disk: OnDisk { access, known, token_known: true }, keys: RefCell::default() };
        let config = sections::read(&text, path, &files)?;
        Ok((HandedConfig { access, text, keys: files.keys.into_inner() }, config))
    }

    /// Takes in the ML-KEM key of the node with this configuration, which it may not have had when it was started.
    ///
    /// # Errors
    /// [`KeyFileError`] with the remedy.
    pub(crate) fn add_kem_key(&mut self, config: &Config) -> Result<(), KeyFileError> {
        let (Some(private), Some(key)) = (&config.node.private_key_file, config.kem_key()?) else {
            return Ok(());
        };
        let path = kem_key_file(private);
        let text = key.expose_line().map_err(|_| KeyFileError::NotAKemKey { path: path.clone() })?;
        self.keys.insert(path, text);
        Ok(())
    }

    /// The ML-KEM key beside this private key.
    pub(crate) fn kem_key(&self, private: &Path) -> Option<KemKey> {
        self.keys.get(&kem_key_file(private))?.parse().ok()
    }

    /// Its text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What it says, as if it had been read from `path`; no file is opened.
    ///
    /// # Errors
    /// As [`HandedConfig::read`].
    pub(crate) fn config(
        &self,
        path: &Path,
        known: Option<(PathBuf, PublicKey)>,
    ) -> Result<Config, ConfigError> {
        sections::read(&self.text, path, &HandedFiles { config: self, known })
    }

    /// Writes all of it, each part behind its length.
    pub(crate) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.access.owner.to_le_bytes())?;
        out.write_all(&self.access.mode.to_le_bytes())?;
        put(out, self.text.as_bytes())?;
        out.write_all(&(self.keys.len() as u64).to_le_bytes())?;
        for (path, key) in &self.keys {
            put(out, path.as_os_str().as_bytes())?;
            put(out, key.as_bytes())?;
        }
        Ok(())
    }

    /// Reads what [`HandedConfig::write_to`] wrote.
    ///
    /// # Errors
    /// `InvalidData` for anything else.
    pub(crate) fn read_from(input: &mut impl Read) -> io::Result<HandedConfig> {
        let access =
            Access { owner: u32::from_le_bytes(array(input)?), mode: u32::from_le_bytes(array(input)?) };
        let text = text(input, FILE_MAX)?;
        let mut keys = BTreeMap::new();
        let count = u64::from_le_bytes(array(input)?);
        if count > KEYS_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        for _ in 0..count {
            let path = PathBuf::from(std::ffi::OsStr::from_bytes(&part(input, KEY_MAX)?));
            keys.insert(path, self::text(input, KEY_MAX)?);
        }
        Ok(HandedConfig { access, text, keys })
    }
}

fn put(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&(bytes.len() as u64).to_le_bytes())?;
    out.write_all(bytes)
}

fn array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A part of at most `most` bytes, in room that is not grown, so that no copy is left behind.
fn part(input: &mut impl Read, most: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    let len = u64::from_le_bytes(array(input)?);
    let len = usize::try_from(len).ok().filter(|_| len <= most).ok_or(io::ErrorKind::InvalidData)?;
    let mut bytes = Zeroizing::new(vec![0; len]);
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn text(input: &mut impl Read, most: u64) -> io::Result<Zeroizing<String>> {
    let bytes = part(input, most)?;
    let text = str::from_utf8(&bytes).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// The files there are, of whose manual keys a copy is kept.
struct Noted {
    disk: OnDisk,
    keys: RefCell<BTreeMap<PathBuf, Zeroizing<String>>>,
}

impl Files for Noted {
    fn own_key(&self, path: &Path) -> Result<PublicKey, KeyFileError> {
        self.disk.own_key(path)
    }

    fn token(&self, path: &Path) -> Result<(), KeyFileError> {
        self.disk.token(path)
    }

    fn web_token(&self, path: &Path) -> Result<(), KeyFileError> {
        self.disk.web_token(path)
    }

    fn key_text(&self, path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
        let text = self.disk.key_text(path)?;
        self.keys.borrow_mut().insert(path.to_owned(), text.clone());
        Ok(text)
    }

    fn access(&self) -> Access {
        self.disk.access
    }
}

/// What was handed over in place of files.
struct HandedFiles<'a> {
    config: &'a HandedConfig,
    known: Option<(PathBuf, PublicKey)>,
}

impl Files for HandedFiles<'_> {
    fn own_key(&self, path: &Path) -> Result<PublicKey, KeyFileError> {
        match &self.known {
            Some((known, key)) if known == path => Ok(*key),
            // Another private key takes a restart.
            _ => Err(KeyFileError::Skipped),
        }
    }

    fn token(&self, _: &Path) -> Result<(), KeyFileError> {
        Ok(())
    }

    fn web_token(&self, _: &Path) -> Result<(), KeyFileError> {
        Ok(())
    }

    fn key_text(&self, path: &Path) -> Result<Zeroizing<String>, KeyFileError> {
        self.config.keys.get(path).cloned().ok_or(KeyFileError::Skipped)
    }

    fn access(&self) -> Access {
        self.config.access
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_configuration_with_keys_in_files_is_the_same_in_another_process() {
        let folder = std::env::temp_dir().join(format!("strait-handed-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let write = |name: &str, text: &str| {
            fs::write(folder.join(name), text).unwrap();
            fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
            folder.join(name)
        };
        let (key_in, key_out) =
            ("0x0102030405060708090a0b0c0d0e0f1011121314", "0x2102030405060708090a0b0c0d0e0f1011121315");
        let (_, second) = (write("in.key", key_in), write("out.key", key_out));
        let path = write(
            "x.toml",
            "[node]\naddress = \"10.0.0.1/24\"\nlisten = 5\n[[peer]]\nname = \"b\"\nendpoint = \"192.0.2.2:5\"\n\
             allowed_ips = \"10.0.0.2\"\n[peer.manual]\ncounter_file = \"b.counter\"\n[peer.manual.esp]\n\
             spi_in = 0x04000001\nspi_out = 0x04000002\nsuite = \"aes-128-gcm\"\nkey_in_file = \"in.key\"\n\
             key_out_file = \"out.key\"\n",
        );
        let (handed, read) = HandedConfig::read(&path, None).unwrap();
        let mut bytes = Vec::new();
        handed.write_to(&mut bytes).unwrap();
        let there = HandedConfig::read_from(&mut &bytes[..]).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(there.config(&path, None).unwrap(), read, "without the files");
        assert_eq!(there.keys.get(&second).map(|key| key.as_str()), Some(key_out));
        for len in 0..bytes.len() {
            assert!(HandedConfig::read_from(&mut &bytes[..len]).is_err(), "{len} bytes");
        }
    }
}
