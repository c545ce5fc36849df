//! How much of two places is the same.

/// How many bytes are the same from `from` and from `at` on.
#[inline(always)]
pub(super) fn common(input: &[u8], from: usize, at: usize) -> usize {
    let (earlier, later) = (&input[from..], &input[at..]);
    let mut length = 0;
    while let (Some(a), Some(b)) = (
        earlier.get(length..).and_then(|a| a.first_chunk()),
        later.get(length..).and_then(|b| b.first_chunk()),
    ) {
        let difference = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if difference != 0 {
            return length + difference.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let (a, b) = (&earlier[length..], &later[length..]);
    length + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
