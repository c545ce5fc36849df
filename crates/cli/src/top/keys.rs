//! Keys as a terminal sends them.

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// `q`.
    Quit,
    /// Ctrl-C, which a terminal in raw mode sends as a byte.
    Interrupt,
    /// `w`.
    Why,
    /// `s`.
    Savings,
    /// `?`.
    Help,
    /// `p`.
    NextPeer,
    /// Arrow up, or `k`.
    Up,
    /// Arrow down, or `j`.
    Down,
    /// Ctrl-L.
    Redraw,
    /// Escape: back to the flows.
    Back,
}

/// The keys in what was read at once. A terminal sends an arrow as ESC `[` or ESC `O` and a letter (ECMA-48; DECCKM); other
/// sequences are passed over.
pub(super) fn keys(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        let key = match (first, rest) {
            (0x1b, [b'[' | b'O', sequence @ ..]) => {
                // Parameters, then one final byte.
                let last = sequence.iter().position(|byte| (0x40..=0x7e).contains(byte));
                let end = last.unwrap_or(sequence.len());
                bytes = sequence.get(end + 1..).unwrap_or_default();
                match sequence.get(..=end) {
                    Some([b'A']) => Some(Key::Up),
                    Some([b'B']) => Some(Key::Down),
                    _ => None,
                }
            }
            (0x1b, _) => Some(Key::Back),
            (0x03, _) => Some(Key::Interrupt),
            (0x0c, _) => Some(Key::Redraw),
            (b'q' | b'Q', _) => Some(Key::Quit),
            (b'w', _) => Some(Key::Why),
            (b's', _) => Some(Key::Savings),
            (b'?' | b'h', _) => Some(Key::Help),
            (b'p', _) => Some(Key::NextPeer),
            (b'k', _) => Some(Key::Up),
            (b'j', _) => Some(Key::Down),
            _ => None,
        };
        keys.extend(key);
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_arrows_and_what_is_neither() {
        let cases: [(&[u8], &[Key]); 9] = [
            (b"qws?", &[Key::Quit, Key::Why, Key::Savings, Key::Help]),
            (b"\x1b[A\x1b[Bjk", &[Key::Up, Key::Down, Key::Down, Key::Up]),
            (b"\x1bOA\x1bOB", &[Key::Up, Key::Down]),
            (b"\x1b", &[Key::Back]),
            (b"\x03\x0cp", &[Key::Interrupt, Key::Redraw, Key::NextPeer]),
            (b"\x1b[5~q", &[Key::Quit]),
            (b"\x1b[1;5Aq", &[Key::Quit]),
            (b"\x1b[", &[]),
            ("xy\u{e9}".as_bytes(), &[]),
        ];
        for (bytes, expected) in cases {
            assert_eq!(keys(bytes), expected, "{bytes:?}");
        }
    }
}
