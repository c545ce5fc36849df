//! Signals by the names of RFC 4254 section 6.10.

/// A signal that a client sends to a session's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionSignal {
    /// ABRT.
    Abrt,
    /// ALRM.
    Alrm,
    /// CONT.
    Cont,
    /// HUP.
    Hup,
    /// INT.
    Int,
    /// KILL.
    Kill,
    /// PIPE.
    Pipe,
    /// QUIT.
    Quit,
    /// TERM.
    Term,
    /// TSTP.
    Tstp,
    /// USR1.
    Usr1,
    /// USR2.
    Usr2,
}

impl SessionSignal {
    /// All of them, by their number in a message.
    pub const ALL: [SessionSignal; 12] = [
        SessionSignal::Abrt,
        SessionSignal::Alrm,
        SessionSignal::Cont,
        SessionSignal::Hup,
        SessionSignal::Int,
        SessionSignal::Kill,
        SessionSignal::Pipe,
        SessionSignal::Quit,
        SessionSignal::Term,
        SessionSignal::Tstp,
        SessionSignal::Usr1,
        SessionSignal::Usr2,
    ];

    /// The name without `SIG`, as RFC 4254 has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SessionSignal::Abrt => "ABRT",
            SessionSignal::Alrm => "ALRM",
            SessionSignal::Cont => "CONT",
            SessionSignal::Hup => "HUP",
            SessionSignal::Int => "INT",
            SessionSignal::Kill => "KILL",
            SessionSignal::Pipe => "PIPE",
            SessionSignal::Quit => "QUIT",
            SessionSignal::Term => "TERM",
            SessionSignal::Tstp => "TSTP",
            SessionSignal::Usr1 => "USR1",
            SessionSignal::Usr2 => "USR2",
        }
    }

    /// The signal of this name, without `SIG`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<SessionSignal> {
        SessionSignal::ALL.into_iter().find(|signal| signal.name() == name)
    }

    /// Its number in a message.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// The signal of this number in a message.
    pub(crate) fn from_number(number: u8) -> Option<SessionSignal> {
        SessionSignal::ALL.get(usize::from(number)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_come_back() {
        for signal in SessionSignal::ALL {
            assert_eq!(SessionSignal::from_name(signal.name()), Some(signal));
            assert_eq!(SessionSignal::from_number(signal.number()), Some(signal));
        }
        assert_eq!(SessionSignal::from_name("SIGINT"), None);
        assert_eq!(SessionSignal::from_number(12), None);
    }
}
