//! RFC 2395 section 2.2 word by word, one bit at a time: nothing here is shared with the codec.

/// What the grammar makes of bytes: the data, or nothing when they break it.
pub(super) fn read(stream: &[u8]) -> Option<Vec<u8>> {
    let mut bits = stream.iter().flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1 == 1));
    let mut data: Vec<u8> = Vec::new();
    loop {
        if !bits.next()? {
            data.push(u8::try_from(number(&mut bits, 8)?).unwrap());
            continue;
        }
        let offset = if bits.next()? {
            match number(&mut bits, 7)? {
                0 => return Some(data),
                near => near,
            }
        } else {
            number(&mut bits, 11)?
        };
        let length = length(&mut bits)?;
        if offset == 0 || offset > data.len() {
            return None;
        }
        for _ in 0..length {
            data.push(data[data.len() - offset]);
        }
    }
}

fn number(bits: &mut impl Iterator<Item = bool>, count: u32) -> Option<usize> {
    (0..count).try_fold(0, |number, _| Some(number << 1 | usize::from(bits.next()?)))
}

fn length(bits: &mut impl Iterator<Item = bool>) -> Option<usize> {
    match number(bits, 2)? {
        0b11 => {}
        short => return Some(2 + short),
    }
    match number(bits, 2)? {
        0b11 => {}
        middle => return Some(5 + middle),
    }
    let mut length = 8;
    loop {
        match number(bits, 4)? {
            0b1111 => length += 15,
            last => return Some(length + last),
        }
    }
}

/// One production of the grammar.
#[derive(Clone, Copy, Debug)]
pub(super) enum Token {
    Raw(u8),
    /// Offset and length; the offset with 7 bits if it fits, unless `far` asks for 11.
    String {
        offset: usize,
        length: usize,
        far: bool,
    },
}

/// Tokens and the end marker as bits, zeros to the end of the byte.
pub(super) fn write(tokens: &[Token]) -> Vec<u8> {
    let mut bits = String::new();
    for token in tokens {
        match *token {
            Token::Raw(byte) => bits += &format!("0{byte:08b}"),
            Token::String { offset, length, far } => {
                bits +=
                    &if far || offset > 127 { format!("10{offset:011b}") } else { format!("11{offset:07b}") };
                bits += &length_code(length);
            }
        }
    }
    bits += "110000000";
    bits += &"0".repeat(bits.len().next_multiple_of(8) - bits.len());
    bits.as_bytes()
        .chunks(8)
        .map(|byte| u8::from_str_radix(str::from_utf8(byte).unwrap(), 2).unwrap())
        .collect()
}

/// The table of lengths, which goes on by fifteen.
pub(super) fn length_code(length: usize) -> String {
    match length {
        2..=4 => format!("{:02b}", length - 2),
        5..=7 => format!("11{:02b}", length - 5),
        _ => "1111".repeat(1 + (length - 8) / 15) + &format!("{:04b}", (length - 8) % 15),
    }
}

/// What tokens stand for.
pub(super) fn data(tokens: &[Token]) -> Vec<u8> {
    let mut data = Vec::new();
    for token in tokens {
        match *token {
            Token::Raw(byte) => data.push(byte),
            Token::String { offset, length, .. } => {
                (0..length).for_each(|_| data.push(data[data.len() - offset]));
            }
        }
    }
    data
}
