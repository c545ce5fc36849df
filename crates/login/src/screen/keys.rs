//! The flags by which a terminal sends keys (kitty's keyboard protocol).

use super::modes::put;

/// Flags that are kept of what programs put on top of each other: more than a terminal keeps (kitty: 8). The oldest go.
const MAX_PUSHED: usize = 16;
/// Flags that there are.
const FLAGS: u16 = 0b1_1111;

/// The flags of one screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyStack {
    /// Below all that was put on top.
    base: u16,
    pushed: Vec<u16>,
}

impl KeyStack {
    /// `CSI > flags u`.
    pub(super) fn push(&mut self, flags: u16) {
        if self.pushed.len() >= MAX_PUSHED {
            self.pushed.remove(0);
        }
        self.pushed.push(flags & FLAGS);
    }

    /// `CSI < count u`.
    pub(super) fn pop(&mut self, count: u16) {
        let count = usize::from(count.max(1));
        if count > self.pushed.len() {
            // With the last all flags go.
            self.base = 0;
        }
        self.pushed.truncate(self.pushed.len().saturating_sub(count));
    }

    /// `CSI = flags ; way u`.
    pub(super) fn change(&mut self, flags: u16, way: Option<u16>) {
        let top = self.pushed.last_mut().unwrap_or(&mut self.base);
        *top = FLAGS
            & match way {
                Some(2) => *top | flags,
                Some(3) => *top & !flags,
                _ => flags,
            };
    }

    /// Makes these the flags of a terminal that has those of `from`.
    pub(super) fn paint(&self, from: &KeyStack, out: &mut Vec<u8>) {
        let same = if self.base == from.base {
            self.pushed.iter().zip(&from.pushed).take_while(|(one, other)| one == other).count()
        } else {
            0
        };
        match from.pushed.len() - same {
            0 => {}
            more => put(out, format_args!("\x1b[<{more}u")),
        }
        if self.base != from.base {
            put(out, format_args!("\x1b[={}u", self.base));
        }
        self.pushed[same..].iter().for_each(|flags| put(out, format_args!("\x1b[>{flags}u")));
    }
}
