//! Frames of a modem's line (LAPM, ITU-T V.42) and of a serial port (PPP in HDLC-like framing, RFC 1662), and the check that both
//! have.

/// The check of a frame (RFC 1662 appendix C, V.42 section 8.1.1.6.1), as it is sent: the least octet first.
pub(super) fn check(octets: &[u8]) -> [u8; 2] {
    (!remainder(octets)).to_le_bytes()
}

/// Whether these octets end with their check.
pub(super) fn is_whole(octets: &[u8]) -> bool {
    remainder(octets) == 0xf0b8
}

fn remainder(octets: &[u8]) -> u16 {
    octets.iter().fold(0xffff, |sum, octet| {
        (0..8).fold(sum ^ u16::from(*octet), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0x8408 } else { sum >> 1 })
    })
}

/// Octets of a full frame's content (N401 of V.42 section 9.2.3, its default).
pub(super) const LAPM_CONTENT: usize = 128;
/// The address of frames with data of the modem that called (DLCI 0, V.42 section 8.2.2).
const LAPM_ADDRESS: u8 = 0x03;

/// Bits on the line of frame number `number` with this content: an address, two octets of control, the check, a zero after each
/// five ones, and the flag that ends it and begins the next.
pub(super) fn lapm_bits(content: &[u8], number: u64) -> u64 {
    let mut frame = vec![LAPM_ADDRESS, (number as u8 & 0x7f) << 1, 0];
    frame.extend_from_slice(content);
    let check = check(&frame);
    frame.extend(check);
    let (mut ones, mut stuffed) = (0, 0);
    for bit in frame.iter().flat_map(|octet| (0..8).map(move |at| octet >> at & 1)) {
        ones = if bit == 1 { ones + 1 } else { 0 };
        if ones == 5 {
            (ones, stuffed) = (0, stuffed + 1);
        }
    }
    frame.len() as u64 * 8 + stuffed + 8
}

const FLAG: u8 = 0x7e;
const ESCAPE: u8 = 0x7d;
/// What an octet that is escaped is changed by.
const CHANGED: u8 = 0x20;
/// The longest packet of a link (RFC 1661's default), with a protocol and a check.
const PPP_FRAME_MAX: usize = 1500 + 4;

/// Writes a frame's content behind `out` with its check, and the flag that ends it and begins the next. Only flags and escapes are
/// escaped: with hardware flow control both ends agree on an empty map of control characters (RFC 1662 section 7.1).
pub(super) fn write_ppp(content: &[u8], out: &mut Vec<u8>) {
    for octet in content.iter().copied().chain(check(content)) {
        if matches!(octet, FLAG | ESCAPE) {
            out.extend([ESCAPE, octet ^ CHANGED]);
        } else {
            out.push(octet);
        }
    }
    out.push(FLAG);
}

/// Reads frames from a serial port.
#[derive(Clone, Debug, Default)]
pub(super) struct PppReader {
    frame: Vec<u8>,
    escaped: bool,
    /// Frames whose check was wrong or that were too long.
    damaged: u64,
}

impl PppReader {
    /// Frames that were damaged or too long since the last call.
    pub(super) fn take_damaged(&mut self) -> u64 {
        core::mem::take(&mut self.damaged)
    }

    /// Takes an octet; gives a frame's content when it ended a whole one.
    pub(super) fn push(&mut self, octet: u8) -> Option<Vec<u8>> {
        match octet {
            FLAG => {
                self.escaped = false;
                let mut frame = core::mem::take(&mut self.frame);
                let whole = frame.len() > 2 && frame.len() <= PPP_FRAME_MAX && is_whole(&frame);
                self.damaged += u64::from(!whole && !frame.is_empty());
                frame.truncate(frame.len().saturating_sub(2));
                return whole.then_some(frame);
            }
            ESCAPE => self.escaped = true,
            // One more than there may be shows that it is too long.
            _ if self.frame.len() > PPP_FRAME_MAX => {}
            octet => {
                let changed = core::mem::take(&mut self.escaped);
                self.frame.push(if changed { octet ^ CHANGED } else { octet });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_is_that_of_the_catalogue() {
        // CRC-16/X-25 of "123456789" in Greg Cook's catalogue of parametrised CRC algorithms.
        assert_eq!(check(b"123456789"), 0x906e_u16.to_le_bytes());
        assert!(is_whole(&[b"123456789".as_slice(), &[0x6e, 0x90]].concat()));
    }

    #[test]
    fn frames_of_a_port_are_read_as_they_were_written_and_damaged_ones_are_not() {
        let contents: Vec<Vec<u8>> = vec![(0..=255).collect(), vec![FLAG, ESCAPE, 0x5e], b"text".to_vec()];
        let mut port = Vec::new();
        contents.iter().for_each(|content| write_ppp(content, &mut port));
        let mut reader = PppReader::default();
        let read: Vec<Vec<u8>> = port.iter().filter_map(|octet| reader.push(*octet)).collect();
        assert_eq!((read, reader.damaged), (contents, 0));
        port[7] ^= 1;
        let mut reader = PppReader::default();
        assert_eq!(port.iter().filter_map(|octet| reader.push(*octet)).count(), 2);
        assert_eq!(reader.damaged, 1);
        let endless = [vec![1; 100_000], vec![FLAG]].concat();
        assert_eq!(endless.iter().filter_map(|octet| reader.push(*octet)).count(), 0);
        assert!(reader.damaged == 2 && reader.frame.capacity() < 4096);
    }

    #[test]
    fn a_frame_on_the_line_has_six_octets_more_and_a_zero_after_five_ones() {
        let bits = lapm_bits(&[0; 128], 0);
        let [low, high] = check(&[&[LAPM_ADDRESS, 0, 0][..], &[0; 128]].concat());
        assert!(low.count_ones() + high.count_ones() < 16);
        assert!((134 * 8..134 * 8 + 4).contains(&bits), "{bits}");
        // Ones throughout: one more in five.
        let more = lapm_bits(&[0xff; 128], 0) - 134 * 8;
        assert!((128 * 8 / 5..128 * 8 / 5 + 5).contains(&more), "{more}");
    }
}
