//! The loud debugging option: the keys of all traffic, for analysers.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use strait_crypto::Suite;
use strait_keying::{DangerKey, Direction};
use zeroize::Zeroizing;

/// The file cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the exported keys to {}: {source}; an existing file is never touched", path.display())]
pub struct KeyLogError {
    path: PathBuf,
    source: io::Error,
}

/// A new file, readable by its owner only, with one JSON object a key.
#[derive(Debug)]
pub(super) struct KeyLog {
    file: File,
    path: PathBuf,
}

impl KeyLog {
    /// Makes the file and says loudly what it is.
    pub(super) fn open(path: &Path) -> Result<KeyLog, KeyLogError> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(|source| KeyLogError { path: path.to_owned(), source })?;
        tracing::warn!(
            "DANGER: the keys of all traffic are written to {}; anyone who reads it reads everything",
            path.display()
        );
        Ok(KeyLog { file, path: path.to_owned() })
    }

    /// Adds a key.
    pub(super) fn write(&mut self, key: &DangerKey) {
        let line = line(key);
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            tracing::error!(%error, "cannot write to {}", self.path.display());
        }
    }
}

/// One line: `tshark` is the row of Wireshark's `esp_sa` table, for suites that it knows.
fn line(key: &DangerKey) -> Zeroizing<String> {
    let material = hex(key.material.expose());
    let direction = match key.direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    let row = match key.suite {
        Suite::Aes128Gcm | Suite::Aes256Gcm => format!(
            r#""IPv4","*","*","0x{:08x}","AES-GCM with 16 octet ICV [RFC4106]","0x{}","NULL","""#,
            key.spi.0, *material
        ),
        Suite::ChaCha20Poly1305 => String::new(),
    };
    let row = Zeroizing::new(row);
    let object = serde_json::json!({
        "direction": direction,
        "spi": format!("0x{:08x}", key.spi.0),
        "suite": key.suite.name(),
        "iv": format!("{:?}", key.iv).to_lowercase(),
        "key_and_salt": *material,
        "tshark": *row,
    });
    Zeroizing::new(format!("{object}\n"))
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
