//! The loud debugging option: every ESP key in a file, for analysers.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use strait_crypto::{SALT_LEN, Suite};
use strait_ipsec::IvMode;
use strait_keying::{DangerKey, Direction};
use zeroize::Zeroizing;

/// Why keys cannot be exported.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the keys of all traffic to {}: {source}; leave `danger_export_keys` out unless an analyser needs them", path.display())]
pub struct ExportError {
    path: PathBuf,
    source: io::Error,
}

/// Two files: one JSON object for each key, and, with `.esp_sa` behind the name, lines for tshark.
#[derive(Debug)]
pub(super) struct Export {
    path: PathBuf,
    json: File,
    esp_sa: File,
}

impl Export {
    /// Empties the files, readable by their owner only, and says so loudly.
    pub(super) fn create(path: &Path) -> Result<Export, ExportError> {
        let open = |path: &Path| {
            // A file that was there keeps its mode, so it is replaced.
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            OpenOptions::new().create_new(true).append(true).mode(0o600).open(path)
        };
        let mut lines = path.as_os_str().to_owned();
        lines.push(".esp_sa");
        let failed = |source| ExportError { path: path.to_owned(), source };
        let export = Export {
            path: path.to_owned(),
            json: open(path).map_err(failed)?,
            esp_sa: open(Path::new(&lines)).map_err(failed)?,
        };
        tracing::warn!(
            path = %path.display(),
            "DANGER: the keys of all traffic are written to this file; whoever reads it reads everything"
        );
        Ok(export)
    }

    /// Appends one key.
    pub(super) fn write(&mut self, peer: &str, key: &DangerKey) {
        let (json, esp_sa) = (json(peer, key), esp_sa(key));
        let written = self.json.write_all(json.as_bytes()).and_then(|()| self.esp_sa.write_all(esp_sa.as_bytes()));
        if let Err(error) = written {
            tracing::warn!(path = %self.path.display(), %error, "a key was not exported");
        }
    }
}

fn hex(bytes: &[u8]) -> Zeroizing<String> {
    // Sized before it is filled, so that no copy is left behind by growing.
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn json(peer: &str, danger: &DangerKey) -> Zeroizing<String> {
    let bytes = danger.material.expose();
    let (key, salt) = bytes.split_at(bytes.len().saturating_sub(SALT_LEN));
    let direction = match danger.direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    let iv = match danger.iv {
        IvMode::Implicit => "implicit",
        IvMode::Explicit => "explicit",
    };
    let peer = serde_json::Value::from(peer);
    Zeroizing::new(format!(
        "{{\"peer\":{peer},\"direction\":\"{direction}\",\"spi\":\"{}\",\"suite\":\"{}\",\"iv\":\"{iv}\",\
         \"key\":\"{}\",\"salt\":\"{}\"}}\n",
        danger.spi,
        danger.suite,
        hex(key).as_str(),
        hex(salt).as_str()
    ))
}

/// Lines of Wireshark's table `esp_sa` (Wireshark user's guide, "ESP decryption preferences"): the key with its salt,
/// for either outer family.
fn esp_sa(danger: &DangerKey) -> Zeroizing<String> {
    let suite = match danger.suite {
        Suite::Aes128Gcm | Suite::Aes256Gcm => "AES-GCM [RFC4106]",
        Suite::ChaCha20Poly1305 => "ChaCha20 with Poly1305 [RFC7634]",
    };
    let key = hex(danger.material.expose());
    let line = |family| {
        Zeroizing::new(format!("\"{family}\",\"*\",\"*\",\"{}\",\"{suite}\",\"0x{}\",\"NULL\",\"\"\n", danger.spi, key.as_str()))
    };
    Zeroizing::new(format!("{}{}", line("IPv4").as_str(), line("IPv6").as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use strait_crypto::KeyMaterial;
    use strait_ipsec::PeerId;
    use strait_wire::Spi;

    #[test]
    fn keys_are_written_twice_for_their_owner_only() {
        let path = std::env::temp_dir().join(format!("strait-export-{}", std::process::id()));
        std::fs::write(&path, "left over").unwrap();
        let mut export = Export::create(&path).unwrap();
        let bytes: Vec<u8> = (0..20).collect();
        let key = DangerKey {
            peer: PeerId(1),
            direction: Direction::Out,
            spi: Spi(0x0400_0001),
            suite: Suite::Aes128Gcm,
            iv: IvMode::Explicit,
            material: KeyMaterial::new(Suite::Aes128Gcm, &bytes).unwrap(),
        };
        export.write("site \"b\"", &key);
        let lines = path.with_extension("esp_sa");
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"peer\":\"site \\\"b\\\"\",\"direction\":\"out\",\"spi\":\"0x04000001\",\"suite\":\"aes-128-gcm\",\
             \"iv\":\"explicit\",\"key\":\"000102030405060708090a0b0c0d0e0f\",\"salt\":\"10111213\"}\n"
        );
        assert_eq!(
            std::fs::read_to_string(&lines).unwrap().lines().next().unwrap(),
            "\"IPv4\",\"*\",\"*\",\"0x04000001\",\"AES-GCM [RFC4106]\",\"0x000102030405060708090a0b0c0d0e0f10111213\",\
             \"NULL\",\"\""
        );
        for file in [&path, &lines] {
            assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
            std::fs::remove_file(file).unwrap();
        }
    }
}
