//! Bits in a row, the most significant of each byte first.

/// Takes bits from bytes.
pub(super) struct BitReader<'a> {
    input: &'a [u8],
    /// Bytes of `input` that are in `window` whole.
    taken: usize,
    /// The next bits, from the top.
    window: u64,
    /// How many of them there are; what is under them is zeros, or loaded once more.
    ready: u32,
}

impl<'a> BitReader<'a> {
    /// Bits of `input` from its start.
    pub(super) fn new(input: &'a [u8]) -> BitReader<'a> {
        BitReader { input, taken: 0, window: 0, ready: 0 }
    }

    /// Loads more: at least 56 bits are ready then, or all there are.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        let rest = self.input.get(self.taken..).unwrap_or_default();
        if let Some(word) = rest.first_chunk() {
            // Whole bytes only; the bits under them are the same again next time.
            self.window |= u64::from_be_bytes(*word) >> self.ready;
            self.taken += ((63 - self.ready) / 8) as usize;
            self.ready |= 56;
        } else {
            for byte in rest.iter().take(((64 - self.ready) / 8) as usize) {
                self.window |= u64::from(*byte) << (56 - self.ready);
                self.ready += 8;
                self.taken += 1;
            }
        }
    }

    /// The next bits, the first at the top; zeros where there are none.
    #[inline(always)]
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// How many bits of [`BitReader::window`] may be taken.
    #[inline(always)]
    pub(super) fn ready(&self) -> u32 {
        self.ready
    }

    /// Takes `count` bits, under 64; `None` when so many are not ready.
    #[inline(always)]
    pub(super) fn take(&mut self, count: u32) -> Option<()> {
        self.ready = self.ready.checked_sub(count)?;
        self.window <<= count;
        Some(())
    }
}

/// Puts bits into bytes.
pub(super) struct BitWriter<'a> {
    output: &'a mut [u8],
    /// Whole bytes written.
    len: usize,
    /// The bits of the byte begun, from the top, and zeros.
    begun: u64,
    /// How many bits of that byte there are: under 8.
    count: u32,
}

impl<'a> BitWriter<'a> {
    /// Bits to the front of `output`.
    pub(super) fn new(output: &'a mut [u8]) -> BitWriter<'a> {
        BitWriter { output, len: 0, begun: 0, count: 0 }
    }

    /// Puts the lowest `count` bits of `value`, 1 to 56, whose others are zero; `None` when the
    /// output is full.
    #[inline(always)]
    pub(super) fn put(&mut self, value: u64, count: u32) -> Option<()> {
        let total = self.count + count;
        let bits = self.begun | value << (64 - total);
        let whole = total / 8;
        let bytes = bits.to_be_bytes();
        let room = self.output.get_mut(self.len..)?;
        if let Some(wide) = room.first_chunk_mut() {
            *wide = bytes;
        } else {
            room.get_mut(..whole as usize)?.copy_from_slice(bytes.get(..whole as usize)?);
        }
        self.len += whole as usize;
        self.begun = bits << (8 * whole);
        self.count = total % 8;
        Some(())
    }

    /// Fills the last byte up with zeros and returns how many bytes there are.
    pub(super) fn finish(mut self) -> Option<usize> {
        if self.count > 0 {
            self.put(0, 8 - self.count)?;
        }
        Some(self.len)
    }
}
