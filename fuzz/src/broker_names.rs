//! Names in a broker's store, which others may write to: what reads is written the same.

use strait_transfer::broker::names::{self, LetterName};

/// A path in the store.
pub fn check(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Some(name) = LetterName::parse(text) {
        assert_eq!(name.file(), text);
        assert!(text.starts_with(&names::start(name.kind, &name.object)));
    }
    if let Some((receiver, name)) = names::parse_letter(text) {
        assert_eq!(names::letter(&receiver, &name), text);
        assert!(text.starts_with(&names::inbox(&receiver)));
    }
    if let Some((object, number)) = names::parse_piece(text) {
        assert_eq!(names::piece(&object, number), text);
        assert!(text.starts_with(&names::contents(&object)));
    }
}
