//! Seeds of what a remote terminal is: predictions, and frames of tokens.

use strait_kerberos::TokenFrame;

use super::Seed;

const TYPED: u8 = 0;
const ECHOED: u8 = 1;
const OUTPUT: u8 = 2;
const CONFIRMED: u8 = 3;
const MODES: u8 = 4;
const ROUND_TRIP: u8 = 5;
const REDRAWN: u8 = 6;
const RESIZED: u8 = 7;

/// Steps behind the size 40 x 6.
fn steps(steps: &[(u8, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![39, 5];
    for (kind, data) in steps {
        bytes.push(kind | u8::try_from(data.len()).unwrap() << 3);
        bytes.extend_from_slice(data);
    }
    bytes
}

/// A session of a shell, of an editor, of a password; keys in the middle of a line; sequences of all kinds.
pub fn prediction_seeds() -> Vec<Seed> {
    let shell = steps(&[
        (MODES, &[0]),
        (OUTPUT, b"\x1b[1;32m$ \x1b[m"),
        (ECHOED, b"ls"),
        (TYPED, b"\r"),
        (OUTPUT, b"\r\nfile\r\n\x1b[38;5;9m$ \x1b[m"),
        (CONFIRMED, b""),
        (TYPED, "é中x".as_bytes()),
        (TYPED, b"\x7f\x7f"),
        (TYPED, b"abc\x1b[D\x1b[D\x1b[Cd\x05\x01"),
        (TYPED, b"\x1b[1~x\x1b[4~y\x1bOCz\x1bx"),
        (OUTPUT, "é中".as_bytes()),
        (CONFIRMED, b""),
        (ROUND_TRIP, b"0123456789"),
        (TYPED, b"q"),
        (REDRAWN, b"\x1b[H\x1b[J$ "),
        (TYPED, b"q"),
        (RESIZED, &[19, 2]),
        (OUTPUT, b"\r\n$ "),
    ]);
    let ahead = steps(&[
        (MODES, &[0]),
        (OUTPUT, b"$ "),
        (ECHOED, b"a"),
        (TYPED, b"\rb"),
        (OUTPUT, b"\r\n$ "),
        (TYPED, b"cd"),
        (CONFIRMED, b""),
        (ROUND_TRIP, b"0123456789"),
        (TYPED, b"\x1b[A"),
        (TYPED, b"x\xff\xc3("),
        (CONFIRMED, b""),
        (ROUND_TRIP, b"0123456789"),
    ]);
    let editor = steps(&[
        (MODES, &[0]),
        (OUTPUT, b"\x1b[?1049h\x1b[Habcdef\x1b[H"),
        (ECHOED, b"x"),
        (TYPED, b"y"),
        (OUTPUT, b"\x1b[?25ly\x1b[?25h"),
        (TYPED, b"zzz\x7f"),
        (OUTPUT, b"\x1b[6;1H\x1b[48;2;1;2;3;7mline\x1b[1;4H\x1b[m"),
        (OUTPUT, b"\x1b(0q\x1b(B\x0eq\x0f\x1b[4hx\x1b[4l"),
        (TYPED, b"w"),
        (OUTPUT, b"\x1b]0;title\x07\x1bPx\x1b\\\x1b[?6h\x1bc"),
        (OUTPUT, b"\x1b[1\x18\x1b#8\x1b%G"),
    ]);
    let secret = steps(&[
        (MODES, &[3]),
        (OUTPUT, b"user: "),
        (ECHOED, b"eve"),
        (TYPED, b"\x1b[D"),
        (TYPED, b"\r"),
        (OUTPUT, b"\r\nPassword: "),
        (TYPED, b"se"),
        (MODES, &[2]),
        (TYPED, b"cret"),
        (CONFIRMED, b""),
    ]);
    let middle = steps(&[
        (MODES, &[3]),
        (OUTPUT, "> one 中 two\x1b[11D".as_bytes()),
        (ECHOED, b"o"),
        (TYPED, b"x"),
        (TYPED, "中".as_bytes()),
        (TYPED, b"\x7f\x7f\x7f"),
        (OUTPUT, b"\x1b[94;3mx\x1b[m"),
        (TYPED, b"0123456789012345678901234567890"),
        (TYPED, b"0123456789012345678901234567890"),
        (CONFIRMED, b""),
        (ROUND_TRIP, b"0123456789"),
    ]);
    vec![
        ("login_prediction", "shell", shell),
        ("login_prediction", "ahead", ahead),
        ("login_prediction", "editor", editor),
        ("login_prediction", "secret", secret),
        ("login_prediction", "middle", middle),
    ]
}

/// Exchanges of tokens: accepted, refused, and what is no frame.
pub fn kerberos_frame_seeds() -> Vec<Seed> {
    let stream = |frames: &[TokenFrame]| {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut bytes).unwrap());
        bytes
    };
    let token = TokenFrame::Token(b"\x60\x06token".to_vec());
    vec![
        ("kerberos_frame", "accepted", stream(&[token.clone(), token.clone(), TokenFrame::Accepted])),
        (
            "kerberos_frame",
            "refused",
            stream(&[token, TokenFrame::Refused(Vec::new()), TokenFrame::Refused(vec![1])]),
        ),
        (
            "kerberos_frame",
            "told",
            stream(&[TokenFrame::told("no such account"), TokenFrame::Refused(Vec::new())]),
        ),
        ("kerberos_frame", "told-too-much", vec![3, 2, 1, 7]),
        ("kerberos_frame", "cut", vec![0, 0, 9, 1, 2]),
        ("kerberos_frame", "empty", vec![0, 0, 0]),
        ("kerberos_frame", "accepted-with-more", vec![1, 0, 1, 7]),
        ("kerberos_frame", "unknown", vec![9, 0, 1, 7]),
    ]
}
