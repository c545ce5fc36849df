//! The configuration of a directory: a TOML file with a section `[directory]`, and `[etcd]` where that has the certificates.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use strait_keying::PublicKey;
use strait_scheduler::Rate;

/// Most bytes of the file: it has some ten lines.
const FILE_MAX: u64 = 1 << 20;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The file.
    #[error("cannot read the configuration {path}: {source}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What is in it.
    #[error("{path}: {words}")]
    Wrong {
        /// Which.
        path: PathBuf,
        /// What is wrong, with its line.
        words: String,
    },
}

/// A directory's configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where nodes ask.
    pub listen: SocketAddr,
    /// Whose certificates and lists are kept.
    pub authority: PublicKey,
    /// The file of the store.
    pub store: PathBuf,
    /// Where metrics are served, an address of loopback; without it they are not.
    pub metrics: Option<SocketAddr>,
    /// The rate of the link that answers may take; without it, as much as sources may ask for.
    pub up: Option<Rate>,
    /// The etcd that has the certificates, of which the store is then a copy.
    pub etcd: Option<EtcdSettings>,
}

/// Which etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdSettings {
    /// Its members, as `http://HOST:PORT` or `https://HOST:PORT`.
    pub urls: Vec<String>,
    /// What all keys in it begin with.
    pub prefix: String,
    /// The file with the certificates of who signed etcd's, as PEM; the system's without it.
    pub ca: Option<PathBuf>,
    /// The files with this client's certificate and its key, as PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    directory: DirectoryTable,
    etcd: Option<EtcdTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DirectoryTable {
    listen: SocketAddr,
    authority: String,
    store: PathBuf,
    metrics: Option<SocketAddr>,
    up: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EtcdTable {
    urls: Vec<String>,
    #[serde(default = "prefix")]
    prefix: String,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

fn prefix() -> String {
    "/strait/".to_owned()
}

impl Settings {
    /// Reads the file at `path`; names in it count from its folder.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn load(path: &Path) -> Result<Settings, SettingsError> {
        let unreadable = |source| SettingsError::Unreadable { path: path.to_owned(), source };
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        io::Read::read_to_string(&mut io::Read::take(file, FILE_MAX), &mut text).map_err(unreadable)?;
        let base = std::path::absolute(path).map_err(unreadable)?;
        Settings::parse(&text, base.parent().unwrap_or(Path::new("/")))
            .map_err(|words| SettingsError::Wrong { path: path.to_owned(), words })
    }

    fn parse(text: &str, base: &Path) -> Result<Settings, String> {
        let File { directory, etcd } = toml::from_str(text).map_err(|error| error.to_string())?;
        let authority =
            directory.authority.parse().map_err(|error| format!("the key in `authority` {error}"))?;
        let DirectoryTable { listen, store, metrics, up, .. } = directory;
        let up =
            up.map(|up| up.parse().map_err(|error| format!("`up` in [directory]: {error}"))).transpose()?;
        if metrics.is_some_and(|address| !address.ip().is_loopback()) {
            return Err(
                "`metrics` in [directory] has to be an address of this host alone, as \"127.0.0.1:9478\""
                    .to_owned(),
            );
        }
        let etcd = etcd.map(|table| etcd_settings(table, base)).transpose()?;
        Ok(Settings { listen, authority, store: base.join(store), metrics, up, etcd })
    }
}

fn etcd_settings(table: EtcdTable, base: &Path) -> Result<EtcdSettings, String> {
    let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
    if table.urls.is_empty() || !table.urls.iter().all(is_url) {
        return Err("`urls` in [etcd] has to have addresses, as [\"https://10.0.0.5:2379\"]".to_owned());
    }
    if !table.prefix.starts_with('/') || !table.prefix.ends_with('/') {
        return Err("`prefix` in [etcd] has to begin and to end with `/`, as \"/strait/\"".to_owned());
    }
    let identity = match (table.certificate, table.key) {
        (Some(certificate), Some(key)) => Some((base.join(certificate), base.join(key))),
        (None, None) => None,
        _ => return Err("`certificate` and `key` in [etcd] need each other".to_owned()),
    };
    let ca = table.ca.map(|ca| base.join(ca));
    Ok(EtcdSettings { urls: table.urls, prefix: table.prefix, ca, identity })
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_keying::PrivateKey;

    fn text(more: &str) -> String {
        let key = PrivateKey::generate(&[1; 32]).public();
        format!("[directory]\nlisten = \"127.0.0.1:7707\"\nauthority = \"{key}\"\nstore = \"d.redb\"\n{more}")
    }

    #[test]
    fn names_count_from_the_folder_and_etcd_is_optional() {
        let settings = Settings::parse(&text(""), Path::new("/etc/x")).unwrap();
        assert_eq!((settings.store, settings.etcd), (PathBuf::from("/etc/x/d.redb"), None));
        let etcd = "[etcd]\nurls = [\"https://a:1\"]\nca = \"ca.pem\"\ncertificate = \"c\"\nkey = \"/k\"\n";
        let etcd = Settings::parse(&text(etcd), Path::new("/etc/x")).unwrap().etcd.unwrap();
        assert_eq!((etcd.prefix.as_str(), etcd.ca), ("/strait/", Some(PathBuf::from("/etc/x/ca.pem"))));
        assert_eq!(etcd.identity, Some((PathBuf::from("/etc/x/c"), PathBuf::from("/k"))));
    }

    #[test]
    fn mistakes_are_said() {
        for (more, words) in [
            ("stoer = 1\n", "unknown field `stoer`"),
            ("metrics = \"0.0.0.0:9478\"\n", "`metrics` in [directory]"),
            ("up = \"fast\"\n", "`up` in [directory]: "),
            ("[etcd]\nurls = []\n", "`urls` in [etcd]"),
            ("[etcd]\nurls = [\"localhost:2379\"]\n", "`urls` in [etcd]"),
            ("[etcd]\nurls = [\"http://a:1\"]\nprefix = \"x\"\n", "`prefix` in [etcd]"),
            ("[etcd]\nurls = [\"http://a:1\"]\nkey = \"x\"\n", "need each other"),
        ] {
            let said = Settings::parse(&text(more), Path::new("/")).unwrap_err();
            assert!(said.contains(words), "{more}: {said}");
        }
        let said = Settings::parse(&text("").replace("authority = \"", "authority = \"x"), Path::new("/"));
        assert!(said.unwrap_err().contains("the key in `authority` has 45 characters"));
    }
}
