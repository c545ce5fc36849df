//! A `[[folder]]` with the folder that was found at its path, and as whom it is served: both stay as they were found, whatever becomes
//! of the path.

use std::path::Path;

use serde::{Deserialize, Serialize};
use strait_node::config::FolderSection;
use strait_node::privileges::{self, ServiceUser};
use strait_transfer::FolderPath;

/// A folder of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServedFolder {
    /// Its section of the configuration.
    pub(crate) section: FolderSection,
    /// The folder, or the reason why it is not served.
    found: Result<FoundFolder, String>,
}

/// A folder that may be served.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FoundFolder {
    pub(crate) path: FolderPath,
    /// The user who reads and writes its files.
    pub(crate) owner: ServiceUser,
}

impl ServedFolder {
    pub(crate) fn find(section: FolderSection) -> ServedFolder {
        let found = find(&section);
        ServedFolder { section, found }
    }

    /// Looks for the folder once more if it was not served.
    pub(crate) fn look_again(&mut self) {
        if self.found.is_err() {
            self.found = find(&self.section);
        }
    }

    /// Returns the folder as one peer may use it, without the names of others.
    pub(crate) fn for_one(&self, peer: &String) -> ServedFolder {
        let mut folder = self.clone();
        let FolderSection { read, write, delete, .. } = &mut folder.section;
        [read, write, delete].into_iter().for_each(|peers| peers.retain(|it| it == peer));
        folder
    }

    /// The folder, if it is served and still has its path.
    pub(crate) fn found(&self) -> Result<&FoundFolder, String> {
        let found = self.found.as_ref().map_err(String::clone)?;
        found.path.check().map_err(|error| error.to_string())?;
        Ok(found)
    }

    /// Its path; one that cannot be opened if it is not served.
    pub(crate) fn path(&self) -> FolderPath {
        self.found.as_ref().map_or_else(|_| FolderPath::shut(&self.section.path), |found| found.path.clone())
    }
}

fn find(section: &FolderSection) -> Result<FoundFolder, String> {
    let path = FolderPath::pin(&section.path).map_err(|error| error.to_string())?;
    let owner = match (&section.owner, path.owner()) {
        (Some(name), _) => ServiceUser::find(Some(name)).map_err(|error| error.to_string())?,
        (None, Some((user, group))) if privileges::is_root() => match user {
            0 => return Err(of_root(&section.path)),
            _ => ServiceUser::Other { user, group },
        },
        (None, _) => ServiceUser::Same,
    };
    Ok(FoundFolder { path, owner })
}

fn of_root(path: &Path) -> String {
    let path = path.display();
    format!(
        "{path} belongs to root, and no `owner` says as whom its files are read and written; \
         give it to a user (`chown USER {path}`), or write `owner = \"root\"` in its [[folder]]"
    )
}
