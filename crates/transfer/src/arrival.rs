//! Sealed transfers that came to their receiver, whatever brought them: a [stick](crate::carry) or a [broker](crate::broker).
//!
//! What is done with one, in this order, each step by a function of [`Arrivals`]:
//!
//! 1. [`Arrivals::open`]: the manifest is opened, its signature and its recipients are checked, and its sender is a peer.
//! 2. [`Arrivals::decide`]: what is [remembered](crate::outbox::received) of the sender's numbers and what is permitted say
//!    whether it is taken, answered again, or left where it is.
//! 3. [`Arrivals::check_place`], [`Arrivals::land`]: its entries go into a folder and are made durable.
//! 4. [`ReceivedTransfers::remember`]: so is what is said of it. A process that is killed before does 3 again, which changes nothing.
//! 5. [`Arrivals::seal_receipt`]: its sender is told.

mod owner;
mod place;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;

use strait_keying::{PrivateKey, PublicKey};

use crate::FolderPath;
use crate::folder::FolderRules;
use crate::outbox::OutboxError;
use crate::outbox::received::{ReceivedTransfers, SeenBefore};
use crate::outbox::{FolderDisk, OutboxDisk};
use crate::sealed::frames::SizePadding;
use crate::sealed::object::{LandedEntries, open_message};
use crate::sealed::{
    AgeIdentity, AgeRecipient, DeliveryOutcome, DeliveryReceipt, EntryFailure, LandingFolder, Manifest,
    ObjectSealError, ObjectSealing, ObjectSeed, OpenError, open_contents, open_manifest, seal_message,
};

pub use owner::FolderOwner;
pub use place::full_path;

/// zstd's level of a receipt: some hundred bytes, and a name for each entry that failed.
const RECEIPT_LEVEL: i32 = 9;

/// What is to be done with a transfer that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrivalPermission {
    /// It goes there.
    Take(ArrivalPlace),
    /// Its sender is told that it is not wanted, and why.
    Refuse(String),
    /// It stays where it is, for this reason.
    Leave(String),
}

/// A folder that a transfer goes into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivalPlace {
    /// The folder, which exists.
    pub folder: FolderPath,
    /// What may be in it at most; attributes of files are those of sealed transfers, whatever it says of them.
    pub rules: FolderRules,
    /// Whether a file that is there may be replaced by one of its name.
    pub replace: bool,
    /// As whom it is written.
    pub owner: FolderOwner,
}

impl ArrivalPlace {
    /// A folder without limits whose files may be replaced.
    #[must_use]
    pub fn open_to_all(folder: PathBuf) -> ArrivalPlace {
        ArrivalPlace {
            folder: folder.into(),
            rules: FolderRules::default(),
            replace: true,
            owner: FolderOwner::Same,
        }
    }
}

/// What is to be done with a transfer, in the light of what came before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrivalDecision {
    /// Its sender is told this, and nothing else is done: it came before, or is refused.
    Answer(DeliveryReceipt),
    /// It goes there.
    Land(ArrivalPlace),
    /// It stays where it is, for this reason.
    Leave(String),
}

/// Why a manifest is not used.
#[derive(Debug, thiserror::Error)]
pub enum ArrivalError {
    /// It is not for this node, or not what it should be.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// This node does not know who sent it.
    #[error("its sender {0} is none of the peers")]
    Stranger(PublicKey),
}

/// A node that takes transfers.
#[derive(Clone, Copy)]
pub struct Arrivals<'a> {
    /// Its key.
    pub node: &'a PrivateKey,
    /// Whom it takes transfers from, by name.
    pub peers: &'a BTreeMap<PublicKey, String>,
    /// What is to be done with one that is new.
    pub permit: &'a dyn Fn(&Manifest) -> ArrivalPermission,
    /// What time it is, in seconds since 1970.
    pub now: i64,
}

impl Arrivals<'_> {
    /// Opens a sealed manifest.
    ///
    /// # Errors
    /// [`ArrivalError`].
    pub fn open(&self, sealed: impl Read) -> Result<Manifest, ArrivalError> {
        let me = AgeRecipient::Node(self.node.public());
        let manifest = open_manifest(sealed, &AgeIdentity::Node(self.node), &me)?;
        if self.peers.contains_key(&manifest.sender) {
            Ok(manifest)
        } else {
            Err(ArrivalError::Stranger(manifest.sender))
        }
    }

    /// What is to be done with a transfer.
    ///
    /// # Errors
    /// [`OutboxError::Disk`] when it is not known what came before.
    pub fn decide(
        &self,
        manifest: &Manifest,
        received: &ReceivedTransfers<'_, impl OutboxDisk>,
    ) -> Result<ArrivalDecision, OutboxError> {
        let refused = match received.seen(&manifest.sender, manifest.serial, manifest.transfer)? {
            SeenBefore::Received(receipt) => return Ok(ArrivalDecision::Answer(receipt)),
            SeenBefore::TooOld => "it is older than what the receiver remembers; send it again".to_owned(),
            SeenBefore::OtherTransfer => {
                "another transfer had its number: was the sender's outbox copied or set back?".to_owned()
            }
            // Its sender and its broker end it by their own clocks: this one may be wrong.
            SeenBefore::New if manifest.expires <= self.now => {
                let ago = self.now.saturating_sub(manifest.expires);
                return Ok(ArrivalDecision::Leave(format!(
                    "its time was over {ago} s ago by this host's clock; if the clock is wrong, set it and try again"
                )));
            }
            SeenBefore::New => match (self.permit)(manifest) {
                ArrivalPermission::Leave(reason) => return Ok(ArrivalDecision::Leave(reason)),
                ArrivalPermission::Take(place) => return Ok(ArrivalDecision::Land(place)),
                ArrivalPermission::Refuse(reason) => reason,
            },
        };
        let failures = vec![EntryFailure { path: Vec::new(), reason: refused }];
        Ok(ArrivalDecision::Answer(DeliveryReceipt { failures, ..self.blank(manifest) }))
    }

    /// Whether a place takes a transfer as it is now: names that are there, and its limits.
    ///
    /// # Errors
    /// Why it does not, in words; nothing was changed.
    pub fn check_place(&self, manifest: &Manifest, place: &ArrivalPlace) -> Result<(), String> {
        let checked = place.owner.run(|| place::check(manifest, place));
        checked.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Takes a transfer's entries out of its sealed contents; all that the receipt says is durable.
    ///
    /// # Errors
    /// [`OpenError`]; entries that were whole before have their names.
    pub fn land(
        &self,
        manifest: &Manifest,
        contents: impl Read + Send,
        place: &ArrivalPlace,
    ) -> Result<DeliveryReceipt, OpenError> {
        let node = self.node;
        let landed = place.owner.run(|| land(node, manifest, contents, place));
        let landed = landed.map_err(OpenError::Landing)??;
        Ok(DeliveryReceipt {
            outcome: landed.outcome,
            entries: landed.entries,
            bytes: landed.bytes,
            failed: landed.failed,
            failures: landed.failures,
            ..self.blank(manifest)
        })
    }

    /// What this node remembers of transfers that came, in its outbox's folder.
    pub fn memory<'d>(&self, disk: &'d mut FolderDisk) -> ReceivedTransfers<'d, FolderDisk> {
        ReceivedTransfers::new(disk, self.node)
    }

    /// Writes a receipt, sealed to the sender of what it is about.
    ///
    /// # Errors
    /// [`ObjectSealError`].
    pub fn seal_receipt<W: Write>(
        &self,
        receipt: &DeliveryReceipt,
        random: [u8; 32],
        out: W,
    ) -> Result<W, ObjectSealError> {
        let recipients = [AgeRecipient::Node(receipt.sender)];
        let padding = SizePadding::Padme;
        let sealing = ObjectSealing { recipients: &recipients, level: RECEIPT_LEVEL, padding };
        seal_message(&receipt.sign(self.node)?, out, ObjectSeed::new(random), &sealing)
    }

    /// Opens a receipt of a transfer that this node sent. Whether who signed it was to receive that, the outbox knows.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_receipt(&self, sealed: impl Read) -> Result<DeliveryReceipt, OpenError> {
        let signed = open_message(sealed, &AgeIdentity::Node(self.node))?;
        Ok(DeliveryReceipt::verify(&signed, &self.node.public())?)
    }

    /// A receipt that refuses.
    fn blank(&self, manifest: &Manifest) -> DeliveryReceipt {
        DeliveryReceipt {
            transfer: manifest.transfer,
            sender: manifest.sender,
            receiver: self.node.public(),
            at: self.now,
            outcome: DeliveryOutcome::Refused,
            entries: 0,
            bytes: 0,
            failed: 0,
            failures: Vec::new(),
        }
    }
}

fn land(
    node: &PrivateKey,
    manifest: &Manifest,
    contents: impl Read,
    place: &ArrivalPlace,
) -> Result<LandedEntries, OpenError> {
    let landing = LandingFolder::open(&place.folder, &manifest.below, manifest.transfer, place.rules);
    let mut landing = landing.map_err(OpenError::Landing)?;
    if !place.replace {
        landing = landing.replacing_nothing();
    }
    open_contents(contents, &AgeIdentity::Node(node), manifest, &mut landing)
}
