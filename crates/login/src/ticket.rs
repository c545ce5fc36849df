//! What lets a client come back to its session.

use core::fmt;

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// A session's number at its server: random, so that numbers tell nothing of one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionNumber(pub u64);

impl fmt::Display for SessionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A session's number and the secret that opens it. The secret is wiped when dropped, is never printed, and is compared in constant
/// time.
#[derive(Clone)]
pub struct Ticket {
    session: SessionNumber,
    secret: Zeroizing<[u8; 32]>,
}

/// Characters of a number in hexadecimal digits, of a space, and of a secret.
const TEXT_LEN: usize = 16 + 1 + 64;

impl Ticket {
    /// A ticket of these random values.
    #[must_use]
    pub fn new(session: SessionNumber, secret: [u8; 32]) -> Ticket {
        Ticket { session, secret: Zeroizing::new(secret) }
    }

    /// The session's number.
    #[must_use]
    pub fn session(&self) -> SessionNumber {
        self.session
    }

    /// The secret, for a message alone.
    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Whether it is the same session and the same secret.
    #[must_use]
    pub fn opens(&self, other: &Ticket) -> bool {
        self.session == other.session && bool::from(self.secret.ct_eq(&*other.secret))
    }

    /// The ticket as a line for a file that only its owner may read: number and secret in hexadecimal digits.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(TEXT_LEN));
        text.push_str(&self.session.to_string());
        text.push(' ');
        for byte in self.secret.iter() {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
            }
        }
        text
    }

    /// The ticket of such a line; a line end after it is left aside.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Ticket> {
        let (session, secret) = text.trim_end().split_once(' ')?;
        if session.len() != 16 || secret.len() != 64 || !text.is_ascii() {
            return None;
        }
        let session = u64::from_str_radix(session, 16).ok()?;
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(secret.as_bytes().chunks_exact(2)) {
            let digit = |at: usize| char::from(digits[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
        }
        let ticket = Ticket::new(SessionNumber(session), bytes);
        bytes.zeroize();
        Some(ticket)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("session", &self.session).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_comes_back_from_its_text_and_never_prints_its_secret() {
        let ticket =
            Ticket::new(SessionNumber(0x1234_5678_9abc_def0), core::array::from_fn(|at| at as u8 * 7));
        let text = ticket.to_text();
        assert_eq!(text.len(), TEXT_LEN);
        assert!(Ticket::from_text(&format!("{}\n", *text)).unwrap().opens(&ticket));
        assert!(!format!("{ticket:?}").contains("0e15"), "a part of the secret");
        for bad in ["", " ", "12 34", &text[..80], &format!("{}0", *text), &text.replace('7', "g")] {
            assert!(Ticket::from_text(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn another_secret_or_session_does_not_open() {
        let ticket = Ticket::new(SessionNumber(1), [1; 32]);
        assert!(ticket.opens(&ticket.clone()));
        assert!(!ticket.opens(&Ticket::new(SessionNumber(2), [1; 32])));
        assert!(!ticket.opens(&Ticket::new(SessionNumber(1), [2; 32])));
    }
}
