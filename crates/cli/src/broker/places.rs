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
use strait_transfer::folder::FolderRules;
use strait_transfer::on_receive::{OwedCommand, OwedCommands};
use strait_transfer::path::Printable;
use strait_transfer::sealed::{DeliveryReceipt, Manifest};

use crate::files::{ReceivedNames, folder_owner, run_commands};

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
    folders: Vec<FolderSection>,
    peers: BTreeMap<PublicKey, String>,
    elsewhere: Elsewhere,
}

impl ArrivalPlaces {
    pub(crate) fn new(config: &Config, elsewhere: Elsewhere) -> ArrivalPlaces {
        let peer = |peer: &strait_node::config::PeerSection| Some((*peer.public_key()?, peer.name.clone()));
        let peers = config.peers.iter().filter_map(peer).collect();
        ArrivalPlaces { folders: config.folders.clone(), peers, elsewhere }
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
            return match folder_place(folder) {
                Ok(place) => ArrivalPermission::Take(place),
                Err(error) => ArrivalPermission::Leave(format!(
                    "it is for the folder {}: {error}; `--into FOLDER` takes it elsewhere",
                    folder.name
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
    fn folder(&self, manifest: &Manifest) -> Option<&FolderSection> {
        let sender = self.peers.get(&manifest.sender)?;
        let mut folders = self.folders.iter();
        folders.find(|folder| folder.name == manifest.folder && folder.write.contains(sender))
    }

    /// The `[[folder]]` with this place.
    fn at(&self, place: &ArrivalPlace) -> Option<&FolderSection> {
        let own = self.elsewhere.into.is_none();
        self.folders.iter().find(|folder| own && folder.path == place.folder)
    }

    /// Writes down, durably, that the command of the folder is to run in which a transfer arrived.
    pub(crate) fn arrived(
        &self,
        manifest: &Manifest,
        place: &ArrivalPlace,
        receipt: &DeliveryReceipt,
    ) -> std::io::Result<()> {
        let Some(folder) = self.at(place).filter(|folder| !folder.on_receive.is_empty()) else {
            return Ok(());
        };
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
        place.owner.run(|| OwedCommands::open(&folder.path)?.owe(&owed))?
    }

    /// Runs commands of the folder at this place that are owed.
    pub(crate) fn settle(&self, place: &ArrivalPlace) {
        if let Some(folder) = self.at(place).filter(|folder| !folder.on_receive.is_empty())
            && let Err(error) = place.owner.run(|| run_commands(folder))
        {
            eprintln!("strait: {}: on_receive: {error}", folder.name);
        }
    }
}

/// A `[[folder]]` as it takes transfers.
fn folder_place(folder: &FolderSection) -> Result<ArrivalPlace, String> {
    let owner = match folder_owner(folder)? {
        ServiceUser::Same => FolderOwner::Same,
        ServiceUser::Other { user, group } => FolderOwner::Other { user, group },
    };
    let rules = FolderRules {
        max_bytes: folder.max_bytes,
        max_entries: folder.max_entries,
        ..FolderRules::default()
    };
    // As over the network: the newer one of two files of a name has it.
    Ok(ArrivalPlace { folder: folder.path.clone(), rules, replace: true, owner })
}
