//! Terminal modes as they travel (RFC 4254 section 8): an opcode and a number for each, to and from termios(3).

/// Where a mode is in a termios.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A control character.
    Character(usize),
    Input(libc::tcflag_t),
    Local(libc::tcflag_t),
    Output(libc::tcflag_t),
    /// A flag of the control modes; sizes of characters are two bits.
    Control(libc::tcflag_t),
}

/// The end of the list.
const END: u8 = 0;
/// Opcodes from this on have no number behind them, and end the list.
const UNDEFINED: u8 = 160;
/// No character (RFC 4254 section 8).
const DISABLED: u32 = 255;
/// The character that stands for none (`_POSIX_VDISABLE` of Linux).
const NO_CHARACTER: libc::cc_t = 0;

const MODES: &[(u8, Place)] = &[
    (1, Place::Character(libc::VINTR)),
    (2, Place::Character(libc::VQUIT)),
    (3, Place::Character(libc::VERASE)),
    (4, Place::Character(libc::VKILL)),
    (5, Place::Character(libc::VEOF)),
    (6, Place::Character(libc::VEOL)),
    (7, Place::Character(libc::VEOL2)),
    (8, Place::Character(libc::VSTART)),
    (9, Place::Character(libc::VSTOP)),
    (10, Place::Character(libc::VSUSP)),
    (12, Place::Character(libc::VREPRINT)),
    (13, Place::Character(libc::VWERASE)),
    (14, Place::Character(libc::VLNEXT)),
    (18, Place::Character(libc::VDISCARD)),
    (30, Place::Input(libc::IGNPAR)),
    (31, Place::Input(libc::PARMRK)),
    (32, Place::Input(libc::INPCK)),
    (33, Place::Input(libc::ISTRIP)),
    (34, Place::Input(libc::INLCR)),
    (35, Place::Input(libc::IGNCR)),
    (36, Place::Input(libc::ICRNL)),
    (37, Place::Input(libc::IUCLC)),
    (38, Place::Input(libc::IXON)),
    (39, Place::Input(libc::IXANY)),
    (40, Place::Input(libc::IXOFF)),
    (41, Place::Input(libc::IMAXBEL)),
    // RFC 8160.
    (42, Place::Input(libc::IUTF8)),
    (50, Place::Local(libc::ISIG)),
    (51, Place::Local(libc::ICANON)),
    (52, Place::Local(XCASE)),
    (53, Place::Local(libc::ECHO)),
    (54, Place::Local(libc::ECHOE)),
    (55, Place::Local(libc::ECHOK)),
    (56, Place::Local(libc::ECHONL)),
    (57, Place::Local(libc::NOFLSH)),
    (58, Place::Local(libc::TOSTOP)),
    (59, Place::Local(libc::IEXTEN)),
    (60, Place::Local(libc::ECHOCTL)),
    (61, Place::Local(libc::ECHOKE)),
    (62, Place::Local(libc::PENDIN)),
    (70, Place::Output(libc::OPOST)),
    (71, Place::Output(libc::OLCUC)),
    (72, Place::Output(libc::ONLCR)),
    (73, Place::Output(libc::OCRNL)),
    (74, Place::Output(libc::ONOCR)),
    (75, Place::Output(libc::ONLRET)),
    (90, Place::Control(libc::CS7)),
    (91, Place::Control(libc::CS8)),
    (92, Place::Control(libc::PARENB)),
    (93, Place::Control(libc::PARODD)),
];

/// `asm-generic/termbits.h`.
const XCASE: libc::tcflag_t = 4;

/// The modes of a terminal, as they travel; without speeds, which no terminal of today has.
pub(super) fn encode(termios: &libc::termios) -> Vec<u8> {
    let mut modes = Vec::with_capacity(MODES.len() * 5 + 1);
    for (code, place) in MODES {
        let value = match place {
            Place::Character(at) => match termios.c_cc.get(*at).copied() {
                None | Some(NO_CHARACTER) => DISABLED,
                Some(character) => character.into(),
            },
            Place::Input(flag) => u32::from(termios.c_iflag & flag != 0),
            Place::Local(flag) => u32::from(termios.c_lflag & flag != 0),
            Place::Output(flag) => u32::from(termios.c_oflag & flag != 0),
            Place::Control(flag) => u32::from(termios.c_cflag & flag == *flag),
        };
        modes.push(*code);
        modes.extend_from_slice(&value.to_be_bytes());
    }
    modes.push(END);
    modes
}

/// Sets what the list says; what is not known, and what follows the first that cannot be read, changes nothing.
pub(super) fn apply(mut modes: &[u8], termios: &mut libc::termios) {
    while let [code, rest @ ..] = modes {
        if *code == END || *code >= UNDEFINED {
            return;
        }
        let Some((value, rest)) = rest.split_first_chunk() else { return };
        modes = rest;
        let value = u32::from_be_bytes(*value);
        let set = |flags: &mut libc::tcflag_t, flag: libc::tcflag_t| {
            *flags = if value != 0 { *flags | flag } else { *flags & !flag };
        };
        match MODES.iter().find(|(known, _)| known == code) {
            Some((_, Place::Character(at))) => {
                if let Some(character) = termios.c_cc.get_mut(*at) {
                    *character = if value == DISABLED {
                        NO_CHARACTER
                    } else {
                        u8::try_from(value).unwrap_or(NO_CHARACTER)
                    };
                }
            }
            Some((_, Place::Input(flag))) => set(&mut termios.c_iflag, *flag),
            Some((_, Place::Local(flag))) => set(&mut termios.c_lflag, *flag),
            Some((_, Place::Output(flag))) => set(&mut termios.c_oflag, *flag),
            // A size of characters is set by the one that is on.
            Some((_, Place::Control(flag @ (libc::CS7 | libc::CS8)))) if value != 0 => {
                termios.c_cflag = termios.c_cflag & !libc::CSIZE | flag;
            }
            Some((_, Place::Control(libc::CS7 | libc::CS8))) => {}
            Some((_, Place::Control(flag))) => set(&mut termios.c_cflag, *flag),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zero() -> libc::termios {
        // SAFETY: all zeros is a valid termios, of integers.
        unsafe { std::mem::zeroed() }
    }

    fn parts(termios: &libc::termios) -> ([libc::tcflag_t; 4], [libc::cc_t; libc::NCCS]) {
        ([termios.c_iflag, termios.c_oflag, termios.c_cflag, termios.c_lflag], termios.c_cc)
    }

    #[test]
    fn what_is_encoded_is_applied_again() {
        let mut one = zero();
        one.c_iflag = libc::ICRNL | libc::IUTF8 | libc::IXON;
        one.c_oflag = libc::OPOST | libc::ONLCR;
        one.c_cflag = libc::CS8 | libc::PARENB;
        one.c_lflag = libc::ISIG | libc::ICANON | libc::ECHO | libc::ECHOKE;
        one.c_cc[libc::VINTR] = 3;
        one.c_cc[libc::VERASE] = 0x7f;
        let mut other = zero();
        other.c_lflag = libc::NOFLSH;
        other.c_cc[libc::VSUSP] = 26;
        apply(&encode(&one), &mut other);
        assert_eq!(parts(&one), parts(&other));
    }

    #[test]
    fn every_truncated_list_and_what_is_not_known_is_harmless() {
        let mut termios = zero();
        termios.c_lflag = libc::ECHO;
        let modes = encode(&termios);
        for cut in 0..modes.len() {
            apply(&modes[..cut], &mut zero());
        }
        let mut other = zero();
        // ISPEED, an unknown one, an undefined one before one that is known.
        apply(&[128, 0, 0, 1, 0, 99, 0, 0, 0, 1, 160, 53, 0, 0, 0, 1], &mut other);
        assert_eq!(parts(&other), parts(&zero()));
        apply(&[1, 0, 0, 1, 0, 2, 0, 0, 0, 255], &mut other);
        assert_eq!(parts(&other), parts(&zero()), "no character beyond a byte");
    }
}
