//! RFC 1951 section by section, one bit at a time, to see how far back a stream refers.

/// The data of a raw DEFLATE stream and the farthest distance in it; nothing when it breaks the rules.
pub(super) fn inflate(stream: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut bits = Bits { stream, at: 0 };
    let (mut data, mut farthest) = (Vec::new(), 0);
    loop {
        let last = bits.number(1)? == 1;
        match bits.number(2)? {
            0 => stored(&mut bits, &mut data)?,
            1 => {
                let lengths: Vec<u8> = [(8, 144), (9, 112), (7, 24), (8, 8)]
                    .into_iter()
                    .flat_map(|(bits, n)| vec![bits; n])
                    .collect();
                coded(&mut bits, &Code::new(&lengths), &Code::new(&[5; 30]), &mut data, &mut farthest)?;
            }
            2 => {
                let (literals, distances) = codes(&mut bits)?;
                coded(&mut bits, &literals, &distances, &mut data, &mut farthest)?;
            }
            _ => return None,
        }
        if last {
            return Some((data, farthest));
        }
    }
}

struct Bits<'a> {
    stream: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> Option<usize> {
        let byte = *self.stream.get(self.at / 8)?;
        self.at += 1;
        Some(usize::from(byte >> ((self.at - 1) % 8) & 1))
    }

    /// A number, the lowest bit first.
    fn number(&mut self, count: u32) -> Option<usize> {
        (0..count).try_fold(0, |number, place| Some(number | self.bit()? << place))
    }
}

/// A Huffman code (section 3.2.2): for each number of bits, the symbols with so many.
struct Code(Vec<Vec<usize>>);

impl Code {
    fn new(lengths: &[u8]) -> Code {
        let of = |bits| (0..lengths.len()).filter(|symbol| lengths[*symbol] == bits).collect();
        Code((1..=15).map(of).collect())
    }

    fn symbol(&self, bits: &mut Bits<'_>) -> Option<usize> {
        let (mut code, mut first) = (0, 0);
        for symbols in &self.0 {
            code = code << 1 | bits.bit()?;
            first <<= 1;
            if code < first + symbols.len() {
                return Some(symbols[code - first]);
            }
            first += symbols.len();
        }
        None
    }
}

/// Section 3.2.4.
fn stored(bits: &mut Bits<'_>, data: &mut Vec<u8>) -> Option<()> {
    bits.at = bits.at.next_multiple_of(8);
    let (len, complement) = (bits.number(16)?, bits.number(16)?);
    if len != !complement & 0xffff {
        return None;
    }
    for _ in 0..len {
        data.push(u8::try_from(bits.number(8)?).unwrap());
    }
    Some(())
}

/// Section 3.2.7.
fn codes(bits: &mut Bits<'_>) -> Option<(Code, Code)> {
    const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    let (literals, distances) = (257 + bits.number(5)?, 1 + bits.number(5)?);
    let mut lengths = [0; 19];
    for place in &ORDER[..4 + bits.number(4)?] {
        lengths[*place] = u8::try_from(bits.number(3)?).unwrap();
    }
    let code = Code::new(&lengths);
    let mut lengths = Vec::new();
    while lengths.len() < literals + distances {
        let (length, times) = match code.symbol(bits)? {
            16 => (*lengths.last()?, 3 + bits.number(2)?),
            17 => (0, 3 + bits.number(3)?),
            18 => (0, 11 + bits.number(7)?),
            length => (u8::try_from(length).unwrap(), 1),
        };
        lengths.resize(lengths.len() + times, length);
    }
    let distances = lengths.get(literals..literals + distances)?;
    Some((Code::new(&lengths[..literals]), Code::new(distances)))
}

/// Section 3.2.5.
fn coded(
    bits: &mut Bits<'_>,
    literals: &Code,
    distances: &Code,
    data: &mut Vec<u8>,
    farthest: &mut usize,
) -> Option<()> {
    loop {
        let length = match literals.symbol(bits)? {
            literal @ ..=255 => {
                data.push(u8::try_from(literal).unwrap());
                continue;
            }
            256 => return Some(()),
            short @ 257..=264 => short - 254,
            285 => 258,
            symbol => grown(symbol - 257, 4, bits)? + 3,
        };
        let distance = match distances.symbol(bits)? {
            short @ 0..=3 => short + 1,
            symbol => grown(symbol, 2, bits)? + 1,
        };
        *farthest = distance.max(*farthest);
        for _ in 0..length {
            data.push(*data.get(data.len().checked_sub(distance)?)?);
        }
    }
}

/// The tables of section 3.2.5 by rule: one extra bit more after every `steps` symbols.
fn grown(symbol: usize, steps: usize, bits: &mut Bits<'_>) -> Option<usize> {
    let extra = symbol / steps - 1;
    Some(((steps + symbol % steps) << extra) + bits.number(u32::try_from(extra).unwrap())?)
}
