//! Signals of a session's program.

use std::io;

use crate::process::checked;

/// Sends a signal to all processes of a group.
///
/// # Errors
/// As `kill(2)`.
pub fn signal_group(group: i32, signal: i32) -> io::Result<()> {
    if group <= 1 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: takes integers.
    checked(unsafe { libc::kill(-group, signal) })
}

/// The name of a signal, without `SIG`; of one without a name, its number.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let known = usize::try_from(signal).ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    known.map_or_else(|| signal.to_string(), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_names_and_those_without_one_their_numbers() {
        assert_eq!(
            (signal_name(15), signal_name(9), signal_name(64)),
            ("TERM".into(), "KILL".into(), "64".into())
        );
    }
}
