//! Keys that are for this program: what is typed after a tilde at the beginning of a line, as ssh(1) has it.

/// What a person asks of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EscapeKey {
    /// `~.`: end the session.
    End,
    /// `~d`: leave it running.
    Detach,
    /// `~^Z`: suspend this program.
    Stop,
    /// `~#`: show the state of the session.
    State,
    /// `~?`: say what keys there are.
    Help,
}

/// What the keys are, for people; `%` stands for the character.
pub(super) const HELP: [&str; 6] = [
    "%.   end the session",
    "%d   leave it running; `strait login --resume` goes back to it",
    "%^Z  suspend this program",
    "%#   show the state of the session",
    "%?   this list",
    "%%   the character itself",
];

const CONTROL_Z: u8 = 0x1a;

/// Where a person is in a line.
#[derive(Debug)]
pub(super) struct EscapeReader {
    /// The character, if there is one.
    character: Option<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    LineStart,
    Inside,
    /// The character was typed at the beginning of a line.
    Escaped,
}

/// What becomes of typed bytes, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// They go to the session.
    Bytes(Vec<u8>),
    /// They are for this program.
    Key(EscapeKey),
}

impl EscapeReader {
    /// At the beginning of a line.
    pub(super) const fn new(character: Option<u8>) -> EscapeReader {
        EscapeReader { character, state: State::LineStart }
    }

    /// The character as people read it.
    pub(super) fn shown(&self) -> String {
        self.character.map_or_else(|| "none".to_owned(), |character| char::from(character).to_string())
    }

    /// Splits what was typed.
    pub(super) fn read(&mut self, typed: &[u8]) -> Vec<Typed> {
        let Some(character) = self.character else { return vec![Typed::Bytes(typed.to_vec())] };
        let (mut out, mut bytes) = (Vec::new(), Vec::new());
        for byte in typed.iter().copied() {
            match self.state {
                State::LineStart if byte == character => {
                    self.state = State::Escaped;
                    continue;
                }
                State::Escaped => {
                    if let Some(key) = key(byte) {
                        if !bytes.is_empty() {
                            out.push(Typed::Bytes(std::mem::take(&mut bytes)));
                        }
                        out.push(Typed::Key(key));
                        self.state = State::LineStart;
                        continue;
                    }
                    bytes.push(character);
                    // Typed twice, it is sent once.
                    if byte != character {
                        bytes.push(byte);
                    }
                }
                State::LineStart | State::Inside => bytes.push(byte),
            }
            self.state = if matches!(byte, b'\r' | b'\n') { State::LineStart } else { State::Inside };
        }
        if !bytes.is_empty() {
            out.push(Typed::Bytes(bytes));
        }
        out
    }
}

fn key(byte: u8) -> Option<EscapeKey> {
    match byte {
        b'.' => Some(EscapeKey::End),
        b'd' => Some(EscapeKey::Detach),
        CONTROL_Z => Some(EscapeKey::Stop),
        b'#' => Some(EscapeKey::State),
        b'?' => Some(EscapeKey::Help),
        _ => None,
    }
}

/// `-e`: a character, `^` and a letter for a control character, or `none`.
pub(crate) fn escape_character(text: &str) -> Result<EscapeCharacter, String> {
    let character = match text.as_bytes() {
        b"none" => None,
        [character] if character.is_ascii() => Some(*character),
        [b'^', letter] if (b'@'..=b'_').contains(&letter.to_ascii_uppercase()) => {
            Some(letter.to_ascii_uppercase() & 0x1f)
        }
        _ => return Err("write one character, `^` and a letter, or `none`".to_owned()),
    };
    Ok(EscapeCharacter(character))
}

/// The character before keys that are for this program; nothing if there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EscapeCharacter(pub(crate) Option<u8>);

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Typed {
        Typed::Bytes(text.as_bytes().to_vec())
    }

    #[test]
    fn keys_are_seen_at_the_beginning_of_a_line_only() {
        let read = |typed: &str| EscapeReader::new(Some(b'~')).read(typed.as_bytes());
        assert_eq!(read("~."), [Typed::Key(EscapeKey::End)]);
        assert_eq!(read("ls ~.\r"), [bytes("ls ~.\r")]);
        assert_eq!(
            read("ls\r~d~."),
            [bytes("ls\r"), Typed::Key(EscapeKey::Detach), Typed::Key(EscapeKey::End)]
        );
        assert_eq!(read("~~."), [bytes("~.")]);
        assert_eq!(read("~x~."), [bytes("~x~.")]);
        assert_eq!(read("~\r~?"), [bytes("~\r"), Typed::Key(EscapeKey::Help)]);
        assert_eq!(read("~\u{1a}~#"), [Typed::Key(EscapeKey::Stop), Typed::Key(EscapeKey::State)]);
        assert_eq!(EscapeReader::new(None).read(b"~."), [bytes("~.")]);
    }

    #[test]
    fn keys_may_come_one_by_one_and_nothing_is_lost() {
        let typed = b"a~b\r~\r~~c\r~xd\n~";
        let mut whole = EscapeReader::new(Some(b'~'));
        let whole = whole.read(typed);
        let mut single = EscapeReader::new(Some(b'~'));
        let single: Vec<_> = typed.iter().flat_map(|byte| single.read(&[*byte])).collect();
        let join = |all: &[Typed]| {
            all.iter().fold(Vec::new(), |mut all, one| {
                if let Typed::Bytes(bytes) = one {
                    all.extend_from_slice(bytes);
                }
                all
            })
        };
        assert_eq!(join(&whole), b"a~b\r~\r~c\r~xd\n");
        assert_eq!(join(&single), join(&whole));
    }

    #[test]
    fn characters() {
        assert_eq!(escape_character("~"), Ok(EscapeCharacter(Some(b'~'))));
        assert_eq!(escape_character("^a"), Ok(EscapeCharacter(Some(1))));
        assert_eq!(escape_character("none"), Ok(EscapeCharacter(None)));
        for wrong in ["", "ab", "^1", "ü"] {
            assert!(escape_character(wrong).is_err(), "{wrong}");
        }
    }
}
