//! The folder of an authority. One command at a time has it; each file is written aside and renamed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use strait_keying::directory::{
    CERTIFICATE_TEXT_MAX, Certificate, CertificateTerms, LIST_MAX, RevocationList,
};
use strait_keying::{PrivateKey, PublicKey};

use crate::failure::{CommandResult, Failure};
use crate::keys;

/// The key.
pub(super) const KEY: &str = "authority.key";
const PUBLIC: &str = "authority.pub";
const CERTIFICATES: &str = "certificates";
const LIST: &str = "revocations";
const SERIAL: &str = "serial";

/// An authority, with its key in memory.
#[derive(Debug)]
pub(super) struct AuthorityFolder {
    path: PathBuf,
    key: PrivateKey,
    _lock: File,
}

impl AuthorityFolder {
    /// Makes one; the folder must not be there, or be empty.
    pub(super) fn make(path: &Path, now: u64) -> Result<AuthorityFolder, Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(Failure::doing(format!("make {}", path.display())))?;
        let mut there = fs::read_dir(path).map_err(Failure::doing(format!("read {}", path.display())))?;
        if there.next().is_some() {
            return Err(Failure::new(format!("{} is not empty, and nothing is overwritten", path.display()))
                .remedy("name another folder"));
        }
        let made = DirBuilder::new().mode(0o700).create(path.join(CERTIFICATES));
        made.map_err(Failure::doing(format!("make {}", path.join(CERTIFICATES).display())))?;
        // Last, so that what was interrupted is no authority.
        let public = keys::make(&path.join(KEY))?;
        let folder = AuthorityFolder::open(path)?;
        folder.write(PUBLIC, format!("{public}\n").as_bytes())?;
        folder.write(SERIAL, b"1\n")?;
        folder.write_list(1, now, [])?;
        Ok(folder)
    }

    /// Opens one, and waits for a command that has it.
    pub(super) fn open(path: &Path) -> Result<AuthorityFolder, Failure> {
        let key = keys::read_private(&path.join(KEY))?;
        let lock = File::open(path).and_then(|folder| folder.lock().map(|()| folder));
        let lock = lock.map_err(Failure::doing(format!("lock {}", path.display())))?;
        Ok(AuthorityFolder { path: path.to_owned(), key, _lock: lock })
    }

    pub(super) fn public(&self) -> PublicKey {
        self.key.public()
    }

    /// The file of a certificate.
    pub(super) fn certificate_file(&self, serial: u64) -> PathBuf {
        self.path.join(CERTIFICATES).join(serial.to_string())
    }

    /// Signs a certificate with the next serial number.
    pub(super) fn sign(&self, terms: &CertificateTerms, card: &str) -> Result<Certificate, Failure> {
        let text = fs::read_to_string(self.path.join(SERIAL));
        let text = text.map_err(Failure::doing(format!("read {}", self.path.join(SERIAL).display())))?;
        let serial: u64 =
            text.trim().parse().map_err(|_| Failure::new(format!("{SERIAL} in the folder has no number")))?;
        let terms = CertificateTerms { serial, ..terms.clone() };
        let certificate = Certificate::issue(&self.key, &terms, card)
            .map_err(|error| Failure::new(format!("what was to be signed {error}")))?;
        // The number is used up before the certificate is there, so that none has it twice.
        self.write(SERIAL, format!("{}\n", serial + 1).as_bytes())?;
        self.write(&format!("{CERTIFICATES}/{serial}"), format!("{}\n", certificate.to_text()).as_bytes())?;
        Ok(certificate)
    }

    /// All certificates, by their serial number.
    pub(super) fn certificates(&self) -> Result<Vec<Certificate>, Failure> {
        let folder = self.path.join(CERTIFICATES);
        let doing = || Failure::doing(format!("read {}", folder.display()));
        let mut all = Vec::new();
        for entry in fs::read_dir(&folder).map_err(doing())? {
            let entry = entry.map_err(doing())?;
            // What a kill left is no certificate.
            if entry.file_name().to_str().is_none_or(|name| name.parse::<u64>().is_err()) {
                continue;
            }
            let bytes = read(&entry.path(), CERTIFICATE_TEXT_MAX + 1)?;
            let text = String::from_utf8_lossy(&bytes);
            let certificate = Certificate::from_text(&text, &self.key.public())
                .map_err(|error| Failure::new(format!("{} {error}", entry.path().display())))?;
            all.push(certificate);
        }
        all.sort_by_key(Certificate::serial);
        Ok(all)
    }

    /// The newest revocation list.
    pub(super) fn list(&self) -> Result<RevocationList, Failure> {
        let path = self.path.join(LIST);
        RevocationList::from_bytes(&read(&path, LIST_MAX)?, &self.key.public())
            .map_err(|error| Failure::new(format!("{} {error}", path.display())))
    }

    /// Signs the next list, with `more` on it and without what has expired; its number.
    pub(super) fn renew(&self, more: &[u64], now: u64) -> Result<u64, Failure> {
        let before = self.list()?;
        let expired: Vec<u64> = self
            .certificates()?
            .iter()
            .filter(|certificate| certificate.terms().valid.1 < now)
            .map(Certificate::serial)
            .collect();
        let serials = before.serials().iter().chain(more).copied();
        let serials = serials.filter(|serial| expired.binary_search(serial).is_err());
        let number = before.number() + 1;
        self.write_list(number, now.max(before.issued()), serials)?;
        Ok(number)
    }

    fn write_list(&self, number: u64, now: u64, serials: impl IntoIterator<Item = u64>) -> CommandResult {
        let list = RevocationList::issue(&self.key, number, now, serials)
            .map_err(|error| Failure::new(format!("the list {error}")))?;
        self.write(LIST, list.as_bytes())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> CommandResult {
        let (path, aside) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let write = || -> io::Result<()> {
            let mut file =
                OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&aside, &path)?;
            File::open(path.parent().unwrap_or(&self.path))?.sync_all()
        };
        write().map_err(Failure::doing(format!("write {}", path.display())))
    }
}

fn read(path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(Failure::doing(format!("read {}", path.display())))?;
    Ok(bytes)
}
