//! The list of operations as bytes.

use super::PatchOp;
use crate::delta::BadDelta;
use crate::delta::number::{read_number, read_small, unzigzag, write_number, zigzag};

/// Appends operations: the kind in the lowest three bits of a length or count, and places relative to where they are
/// expected.
pub(super) fn write_ops(ops: &[PatchOp], to: &mut Vec<u8>) {
    let mut next = ExpectedPlaces::default();
    for op in ops {
        let (kind, size) = match *op {
            PatchOp::Literal { len } => (0, len),
            PatchOp::Chunks { count, .. } => (1, count),
            PatchOp::Fine { count, .. } => (2, count),
            PatchOp::Range { source: PatchOp::OLD, len, .. } => (3, len),
            PatchOp::Range { len, .. } => (4, len),
            PatchOp::Hint { len, .. } => (5, len),
        };
        write_number(u64::from(size) << 3 | kind, to);
        match *op {
            PatchOp::Literal { .. } => {}
            PatchOp::Chunks { first, count } => next.chunk.write(first.into(), count, to),
            PatchOp::Fine { first, count } => next.fine.write(first.into(), count, to),
            PatchOp::Range { source: PatchOp::OLD, offset, len } => next.old.write(offset, len, to),
            PatchOp::Range { source, offset, len } => {
                write_number(source.into(), to);
                next.sent.write(offset, len, to);
            }
            PatchOp::Hint { offset, len } => next.hint.write(offset, len, to),
        }
    }
}

/// Reads operations.
pub(super) fn read_ops(mut list: &[u8]) -> Result<Vec<PatchOp>, BadDelta> {
    let (mut ops, mut next) = (Vec::new(), ExpectedPlaces::default());
    while !list.is_empty() {
        let head = read_number(&mut list)?;
        let size = u32::try_from(head >> 3).map_err(|_| BadDelta::TooLarge)?;
        if size == 0 {
            return Err(BadDelta::Impossible { what: "empty operation" });
        }
        let small = |place: u64| u32::try_from(place).map_err(|_| BadDelta::TooLarge);
        ops.push(match head & 7 {
            0 => PatchOp::Literal { len: size },
            1 => PatchOp::Chunks { first: small(next.chunk.read(size, &mut list)?)?, count: size },
            2 => PatchOp::Fine { first: small(next.fine.read(size, &mut list)?)?, count: size },
            3 => PatchOp::Range { source: PatchOp::OLD, offset: next.old.read(size, &mut list)?, len: size },
            4 => {
                let source = read_small(&mut list)?;
                PatchOp::Range { source, offset: next.sent.read(size, &mut list)?, len: size }
            }
            5 => PatchOp::Hint { offset: next.hint.read(size, &mut list)?, len: size },
            _ => return Err(BadDelta::Impossible { what: "operation" }),
        });
    }
    Ok(ops)
}

/// Where the next of each kind is expected: behind the one before.
#[derive(Default)]
struct ExpectedPlaces {
    chunk: ExpectedPlace,
    fine: ExpectedPlace,
    old: ExpectedPlace,
    sent: ExpectedPlace,
    hint: ExpectedPlace,
}

#[derive(Default)]
struct ExpectedPlace(u64);

impl ExpectedPlace {
    fn write(&mut self, place: u64, size: u32, to: &mut Vec<u8>) {
        write_number(zigzag(place.wrapping_sub(self.0) as i64), to);
        self.0 = place.wrapping_add(size.into());
    }

    fn read(&mut self, size: u32, list: &mut &[u8]) -> Result<u64, BadDelta> {
        let place = self.0.wrapping_add(unzigzag(read_number(list)?) as u64);
        self.0 = place.checked_add(size.into()).ok_or(BadDelta::TooLarge)?;
        Ok(place)
    }
}
