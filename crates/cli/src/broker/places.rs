//! Where a transfer from a broker goes.
//!
//! The rule: into the folder that the command names; else into the `[[folder]]` that the transfer names, if its sender may write there,
//! as its owner and by its limits, as over the network; else into the current folder of a command, and of no process without one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use strait_keying::PublicKey;
use strait_node::config::{Config, FolderSection};
use strait_node::privileges::ServiceUser;
use strait_transfer::TransferId;
use strait_transfer::arrival::{ArrivalPermission, ArrivalPlace, FolderOwner, full_path};
use strait_transfer::on_receive::{OwedCommand, OwedCommands};
use strait_transfer::path::Printable;
use strait_transfer::sealed::{DeliveryReceipt, Manifest};

use crate::files::{FoundFolder, ReceivedNames, ServedFolder, rules, run_commands};
use crate::output::note;

/// Where transfers go that no `[[folder]]` takes, and all that a command says it of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elsewhere {
    /// The folder that a command named: everything goes there.
    pub(crate) into: Option<PathBuf>,
    /// The folder for what no `[[folder]]` takes.
    pub(crate) rest: Option<PathBuf>,
    /// Whether files there are replaced.
    pub(crate) overwrite: bool,
}

/// The folders of a node, and where else transfers go.
pub(crate) struct ArrivalPlaces {
    folders: Vec<ServedFolder>,
    peers: BTreeMap<PublicKey, String>,
    elsewhere: Elsewhere,
}

impl ArrivalPlaces {
    pub(crate) fn new(config: &Config, elsewhere: Elsewhere) -> ArrivalPlaces {
        let peer = |peer: &strait_node::config::PeerSection| Some((*peer.public_key()?, peer.name.clone()));
        let peers = config.peers.iter().filter_map(peer).collect();
        let folders = config.folders.iter().cloned().map(ServedFolder::find).collect();
        ArrivalPlaces { folders, peers, elsewhere }
    }

    /// Whom transfers are taken from, by name.
    pub(crate) fn peers(&self) -> &BTreeMap<PublicKey, String> {
        &self.peers
    }

    /// What a peer is called.
    pub(crate) fn name(&self, key: &PublicKey) -> String {
        self.peers.get(key).cloned().unwrap_or_else(|| key.to_string())
    }

    /// Where a transfer goes.
    pub(crate) fn permit(&self, manifest: &Manifest) -> ArrivalPermission {
        let into = |folder: &PathBuf| {
            let place = ArrivalPlace::open_to_all(folder.clone());
            ArrivalPermission::Take(ArrivalPlace { replace: self.elsewhere.overwrite, ..place })
        };
        if let Some(folder) = &self.elsewhere.into {
            return into(folder);
        }
        if let Some(folder) = self.folder(manifest) {
            return match folder_place(folder, &self.name(&manifest.sender)) {
                Ok(place) => ArrivalPermission::Take(place),
                Err(error) => ArrivalPermission::Leave(format!(
                    "it is for the folder {}: {error}; `--into FOLDER` takes it elsewhere",
                    folder.section.name
                )),
            };
        }
        match &self.elsewhere.rest {
            Some(folder) => into(folder),
            None => ArrivalPermission::Leave(format!(
                "no [[folder]] called {} takes files of {}; `strait fetch --into FOLDER` takes it",
                Printable(manifest.folder.as_bytes()),
                self.name(&manifest.sender)
            )),
        }
    }

    /// The folder that a transfer names, if its sender may write there.
    fn folder(&self, manifest: &Manifest) -> Option<&ServedFolder> {
        let sender = self.peers.get(&manifest.sender)?;
        let mut folders = self.folders.iter();
        folders.find(|it| it.section.name == manifest.folder && it.section.write.contains(sender))
    }

    /// The `[[folder]]` with this place, if it has a command.
    fn commanded(&self, place: &ArrivalPlace) -> Option<&FolderSection> {
        let own = self.elsewhere.into.is_none();
        let mut sections = self.folders.iter().map(|folder| &folder.section);
        sections.find(|it| own && it.path == place.folder.path() && !it.on_receive.is_empty())
    }

    /// Writes down, durably, that the command of the folder is to run in which a transfer arrived.
    pub(crate) fn arrived(
        &self,
        manifest: &Manifest,
        place: &ArrivalPlace,
        receipt: &DeliveryReceipt,
    ) -> std::io::Result<()> {
        if self.commanded(place).is_none() {
            return Ok(());
        }
        let failed = |path: &[u8]| receipt.failures.iter().any(|failure| failure.path == path);
        let mut names = ReceivedNames::default();
        let whole = manifest.entries.iter().filter(|entry| !failed(&entry.path));
        whole.for_each(|entry| names.add(full_path(manifest, &entry.path)));
        let paths = names.all();
        if paths.is_empty() {
            return Ok(());
        }
        let transfer: TransferId = manifest.transfer;
        let owed = OwedCommand { transfer, sender: manifest.sender, paths };
        place.owner.run(|| OwedCommands::open(&place.folder)?.owe(&owed))?
    }

    /// Runs commands of the folder at this place that are owed.
    pub(crate) fn settle(&self, place: &ArrivalPlace) {
        if let Some(folder) = self.commanded(place)
            && let Err(error) = place.owner.run(|| run_commands(folder, &place.folder))
        {
            note(format_args!("strait: {}: on_receive: {error}", folder.name));
        }
    }
}

/// A `[[folder]]` as it takes transfers.
fn folder_place(folder: &ServedFolder, sender: &String) -> Result<ArrivalPlace, String> {
    let FoundFolder { path, owner } = folder.found()?.clone();
    let owner = match owner {
        ServiceUser::Same => FolderOwner::Same,
        ServiceUser::Other { user, group } => FolderOwner::Other { user, group },
    };
    let rules = rules(&folder.section, sender);
    // As over the network: the newer one of two files of a name has it.
    Ok(ArrivalPlace { folder: path, rules, replace: true, owner })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use strait_keying::PrivateKey;

    use super::*;

    fn key(seed: u8) -> PublicKey {
        PrivateKey::generate(&[seed; 32]).public()
    }

    /// A node with a folder `inbox` that site-a may write and site-c may not, and one that is not there.
    fn places(elsewhere: Elsewhere) -> ArrivalPlaces {
        let mut text = "[node]\nprivate_key_file = \"a.key\"\ntunnel = false\n\n".to_owned();
        for (seed, name) in [(1, "site-a"), (3, "site-c")] {
            text += &format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{}\"\n\n", key(seed));
        }
        for (name, path) in [("inbox", std::env::temp_dir()), ("lost", "/nowhere/at/all".into())] {
            let path = path.display();
            // The folder for temporary files is root's.
            let owner = if strait_node::privileges::is_root() { "owner = \"root\"\n" } else { "" };
            text +=
                &format!("[[folder]]\nname = \"{name}\"\npath = \"{path}\"\nwrite = [\"site-a\"]\n{owner}\n");
        }
        let config = Config::parse(&text, Path::new("a.toml")).unwrap_or_else(|error| panic!("{error}"));
        ArrivalPlaces::new(&config, elsewhere)
    }

    fn manifest(from: u8, folder: &str) -> Manifest {
        Manifest {
            transfer: TransferId::from_bytes([1; 16]),
            sender: key(from),
            serial: 1,
            made: 0,
            expires: i64::MAX,
            folder: folder.to_owned(),
            below: Vec::new(),
            recipients: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Where it goes and whether it replaces files; or why it stays.
    fn goes(elsewhere: &Elsewhere, from: u8, folder: &str) -> Result<(PathBuf, bool), String> {
        match places(elsewhere.clone()).permit(&manifest(from, folder)) {
            ArrivalPermission::Take(place) => Ok((place.folder.path().to_owned(), place.replace)),
            ArrivalPermission::Leave(reason) | ArrivalPermission::Refuse(reason) => Err(reason),
        }
    }

    #[test]
    fn a_transfer_goes_where_the_command_says_else_to_its_folder_else_to_the_current_one() {
        let nowhere = Elsewhere::default();
        let here = Elsewhere { rest: Some("/here".into()), ..Elsewhere::default() };
        let named = Elsewhere { into: Some("/named".into()), overwrite: true, ..here.clone() };
        assert_eq!(goes(&here, 1, "inbox"), Ok((std::env::temp_dir(), true)));
        assert_eq!(goes(&nowhere, 1, "inbox"), Ok((std::env::temp_dir(), true)));
        for (from, folder) in [(3, "inbox"), (1, "other")] {
            assert_eq!(goes(&here, from, folder), Ok(("/here".into(), false)), "{from} {folder}");
            let left = goes(&nowhere, from, folder).unwrap_err();
            assert!(left.contains("no [[folder]] called") && left.contains("--into"), "{left}");
        }
        let left = goes(&here, 1, "lost").unwrap_err();
        assert!(left.contains("/nowhere/at/all"), "{left}");
        for folder in ["inbox", "lost", "other"] {
            assert_eq!(goes(&named, 1, folder), Ok(("/named".into(), true)));
        }
    }
}
