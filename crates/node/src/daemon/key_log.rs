//! The loud debugging option: the keys of all traffic, for analysers.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use strait_crypto::Suite;
use strait_ipsec::IvMode;
use strait_keying::{DangerKey, SaDirection};
use zeroize::Zeroizing;

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyLogError {
    /// The system refuses.
    #[error("cannot write the exported keys to {}: {source}; leave `danger_export_keys` out unless an analyser needs them", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It has another owner, or is readable by others.
    #[error("cannot write the keys of all traffic to {}: it exists and is not a file with mode 600; name another", path.display())]
    Open {
        /// The file.
        path: PathBuf,
    },
}

/// A file, readable by its owner only, that gets one JSON object a key.
#[derive(Debug)]
pub(super) struct KeyLog {
    file: File,
    path: PathBuf,
    /// Keys that could not be written since the last that could.
    missing: u64,
}

impl KeyLog {
    /// Makes the file, or goes on with that of an earlier run.
    pub(super) fn open(path: &Path) -> Result<KeyLog, KeyLogError> {
        let failed = |source| KeyLogError::Io { path: path.to_owned(), source };
        // Never through a link: that could lead into the file of any user.
        let mut options = OpenOptions::new();
        options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() || found.mode() & 0o077 != 0 || found.uid() != crate::privileges::user() {
            return Err(KeyLogError::Open { path: path.to_owned() });
        }
        Ok(KeyLog { file, path: path.to_owned(), missing: 0 })
    }

    /// Adds a key. A key that cannot be written is missing for ever, and the log says so once.
    pub(super) fn write(&mut self, key: &DangerKey) {
        let written = self.add(line(key).as_bytes());
        let path = self.path.display();
        match written {
            Ok(()) if self.missing > 0 => {
                tracing::warn!("keys are written to {path} again, without {} before", self.missing);
                self.missing = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if self.missing == 0 {
                    tracing::error!(%error, "cannot write keys to {path}; the tunnel goes on");
                }
                self.missing += 1;
            }
        }
    }

    /// Adds a whole line or nothing.
    fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        self.file.write_all(line).inspect_err(|_| {
            // A disk may be full in the middle of a line.
            let _ = self.file.set_len(before);
        })
    }

    /// What is wrong, if keys are missing.
    pub(super) fn warning(&self) -> Option<String> {
        let path = self.path.display();
        (self.missing > 0).then(|| format!("{} keys could not be written to {path}", self.missing))
    }
}

/// One line: `tshark` and `tshark_ipv6` are rows of Wireshark's `esp_sa` table for either outer family, for suites
/// that it knows.
fn line(key: &DangerKey) -> Zeroizing<String> {
    let material = hex(key.material.expose());
    let direction = match key.direction {
        SaDirection::In => "in",
        SaDirection::Out => "out",
    };
    let iv = match key.iv {
        IvMode::Implicit => "implicit",
        IvMode::Explicit => "explicit",
    };
    // Written by hand, since a JSON tree would leave copies of the key behind; no field needs escaping but quotes.
    let row = |family| Zeroizing::new(row(family, key, &material).replace('"', "\\\""));
    Zeroizing::new(format!(
        "{{\"direction\":\"{direction}\",\"spi\":\"{}\",\"suite\":\"{}\",\"iv\":\"{iv}\",\
         \"key_and_salt\":\"{}\",\"tshark\":\"{}\",\"tshark_ipv6\":\"{}\"}}\n",
        key.spi,
        key.suite,
        *material,
        *row("IPv4"),
        *row("IPv6"),
    ))
}

fn row(family: &str, key: &DangerKey, material: &str) -> Zeroizing<String> {
    Zeroizing::new(match key.suite {
        Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::Aes128Gcm12 => format!(
            r#""{family}","*","*","{}","AES-GCM with {} octet ICV [RFC4106]","0x{material}","NULL","""#,
            key.spi,
            key.suite.icv_len()
        ),
        Suite::ChaCha20Poly1305 => String::new(),
    })
}

fn hex(bytes: &[u8]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(bytes.len() * 2));
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('?'));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use strait_crypto::KeyMaterial;
    use strait_ipsec::PeerId;
    use strait_wire::Spi;

    fn key(suite: Suite) -> DangerKey {
        let bytes: Vec<u8> = (0..36).take(suite.key_material_len()).collect();
        let material = KeyMaterial::new(suite, &bytes).unwrap();
        let (direction, iv) = (SaDirection::Out, IvMode::Explicit);
        DangerKey { peer: PeerId(1), direction, spi: Spi(0x0400_0001), suite, iv, material }
    }

    #[test]
    fn a_line_is_json_with_rows_for_tshark() {
        let text = line(&key(Suite::Aes128Gcm));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let material = "000102030405060708090a0b0c0d0e0f10111213";
        assert_eq!(value["key_and_salt"], material);
        assert_eq!((&value["spi"], &value["suite"]), (&"0x04000001".into(), &"aes-128-gcm".into()));
        assert_eq!((&value["direction"], &value["iv"]), (&"out".into(), &"explicit".into()));
        for (field, family) in [("tshark", "IPv4"), ("tshark_ipv6", "IPv6")] {
            let row = format!(
                "\"{family}\",\"*\",\"*\",\"0x04000001\",\"AES-GCM with 16 octet ICV [RFC4106]\",\"0x{material}\",\"NULL\",\"\""
            );
            assert_eq!(value[field], row);
        }
        let value: serde_json::Value = serde_json::from_str(&line(&key(Suite::ChaCha20Poly1305))).unwrap();
        assert_eq!(value["tshark"], "");
    }

    #[test]
    fn the_file_is_its_owners_and_survives_a_restart() {
        let path = std::env::temp_dir().join(format!("strait-keys-{}", std::process::id()));
        for _ in 0..2 {
            KeyLog::open(&path).unwrap().write(&key(Suite::Aes256Gcm));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(KeyLog::open(&path), Err(KeyLogError::Open { .. })));
        let link = path.with_extension("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(KeyLog::open(&link), Err(KeyLogError::Io { .. })), "a link is not followed");
        for file in [path, link] {
            std::fs::remove_file(file).unwrap();
        }
    }
}
