//! Questions that programs ask the terminal, which a model of it cannot answer: what it is, what it can, where its cursor is.

/// Bytes of a question at most: names of capabilities, a pixel of an image.
const MAX_QUESTION: usize = 256;

/// Returns true for a whole sequence that is a question (xterm's control sequences, kitty's keys and graphics).
pub(crate) fn is_question(piece: &[u8]) -> bool {
    match piece {
        _ if piece.len() > MAX_QUESTION => false,
        [0x1b, b'Z'] => true,
        [0x1b, b'[', parameters @ .., last] => asks(parameters, *last),
        [0x1b, b']', text @ ..] => {
            let text = text.strip_suffix(b"\x07").or(text.strip_suffix(b"\x1b\\")).unwrap_or(text);
            text.split(|byte| *byte == b';').any(|part| part == b"?")
        }
        [0x1b, b'P', b'$' | b'+', b'q', ..] => true,
        [0x1b, b'_', b'G', text @ ..] => text.windows(3).any(|part| part == b"a=q"),
        _ => false,
    }
}

fn asks(parameters: &[u8], last: u8) -> bool {
    let mark = parameters.first().copied().filter(|byte| (b'<'..=b'?').contains(byte)).unwrap_or(0);
    let between = parameters.last().copied().filter(|byte| (0x20..0x30).contains(byte)).unwrap_or(0);
    match (mark, between, last) {
        // Device attributes, status, parameters, modes and presentation.
        (0 | b'=' | b'>', 0, b'c') | (0 | b'?', 0, b'n') | (0, 0, b'x') => true,
        (0 | b'?', b'$', b'p') | (0, b'$', b'w') => true,
        // The terminal's name; flags of keys.
        (b'>', 0, b'q') | (b'?', 0, b'u' | b'm') => true,
        // The sizes of the window and its title, and of colours and images.
        (0, 0, b't') => matches!(parameters, [b'1', b'1'..=b'9', ..] | [b'2', b'0' | b'1', ..]),
        (b'?', 0, b'S') => matches!(parameters.split(|byte| *byte == b';').nth(1), Some(b"1" | b"4")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_told_from_what_changes_the_terminal() {
        let questions = [
            "[c",
            "[0c",
            "[>c",
            "[=c",
            "[5n",
            "[6n",
            "[?6n",
            "[?996n",
            "[?2026$p",
            "[4$p",
            "[>q",
            "[>0q",
            "[?u",
            "[?4m",
            "[14t",
            "[18t",
            "[21t",
            "[?1;1;0S",
            "[x",
            "[1$w",
            "Z",
            "]11;?\x07",
            "]4;1;?\x1b\\",
            "P+q544e\x1b\\",
            "P$qm\x1b\\",
            "_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
        ];
        for question in questions {
            assert!(is_question(format!("\x1b{question}").as_bytes()), "{question:?}");
        }
        let others = [
            "[?1c",
            "[>4n",
            "[>1u",
            "[u",
            "[m",
            "[>4;2m",
            "[22t",
            "[8;24;80t",
            "[2 q",
            "[!p",
            "[3S",
            "[?1;3;9S",
            "]11;red\x07",
            "]2;what?\x07",
            "c",
            "_Ga=T;AAAA\x1b\\",
            "[?1049h",
        ];
        for other in others {
            assert!(!is_question(format!("\x1b{other}").as_bytes()), "{other:?}");
        }
        assert!(!is_question(b"plain") && !is_question(&[&b"\x1b]11;?"[..], &[b' '; 300], b"\x07"].concat()));
    }
}
