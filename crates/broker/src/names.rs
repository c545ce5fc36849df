//! What objects are called in the store, as its paths; see [`strait_transfer::broker::places`].

use object_store::path::Path;
use strait_keying::PublicKey;
use strait_transfer::broker::message::ObjectName;
use strait_transfer::broker::places;

pub use places::{LetterName, PIECE, hex, piece_length, pieces, start};

/// The folder of all inboxes.
#[must_use]
pub fn inboxes() -> Path {
    Path::from(places::inboxes())
}

/// The folder of one inbox.
#[must_use]
pub fn inbox(receiver: &PublicKey) -> Path {
    Path::from(places::inbox(receiver))
}

/// A letter in the inbox of `receiver`.
#[must_use]
pub fn letter(receiver: &PublicKey, name: &LetterName) -> Path {
    Path::from(places::letter(receiver, name))
}

/// Whose letter this is, if it is one.
#[must_use]
pub fn parse_letter(path: &Path) -> Option<(PublicKey, LetterName)> {
    places::parse_letter(path.as_ref())
}

/// A place in the list of what a sender sent: behind a letter in an inbox, or at the inbox's beginning.
#[must_use]
pub fn place(receiver: &PublicKey, file: &str) -> String {
    format!("{}/{file}", hex(receiver))
}

/// Reads a place; nothing if it is none.
#[must_use]
pub fn parse_place(place: &str) -> Option<(PublicKey, &str)> {
    let (receiver, file) = place.split_once('/')?;
    let is_letter = file.is_empty() || LetterName::parse(file).is_some();
    places::key(receiver).filter(|_| is_letter).map(|key| (key, file))
}

/// The beginnings of the names of a sender's letters, of each kind, in order.
#[must_use]
pub fn starts(sender: &PublicKey) -> [String; 2] {
    ["r", "t"].map(|kind| format!("{kind}-{}-", hex(sender)))
}

/// The folder of all contents.
#[must_use]
pub fn all_contents() -> Path {
    Path::from(places::all_contents())
}

/// The folder of an object's contents.
#[must_use]
pub fn contents(object: &ObjectName) -> Path {
    Path::from(places::contents(object))
}

/// A piece of an object's contents.
#[must_use]
pub fn piece(object: &ObjectName, number: u64) -> Path {
    Path::from(places::piece(object, number))
}

/// Which piece this is, if it is one.
#[must_use]
pub fn parse_piece(path: &Path) -> Option<(ObjectName, u64)> {
    places::parse_piece(path.as_ref())
}
