//! Names in a broker's store, which others may write to: what reads is written the same.

use strait_transfer::broker::places::{self, LetterName};

/// A path in the store.
pub fn check(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Some(name) = LetterName::parse(text) {
        assert_eq!(name.file(), text);
        assert!(text.starts_with(&places::start(name.kind, &name.object)));
    }
    if let Some((receiver, name)) = places::parse_letter(text) {
        assert_eq!(places::letter(&receiver, &name), text);
        assert!(text.starts_with(&places::inbox(&receiver)));
    }
    if let Some((object, number)) = places::parse_piece(text) {
        assert_eq!(places::piece(&object, number), text);
        assert!(text.starts_with(&places::contents(&object)));
    }
}
