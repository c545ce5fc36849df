//! The dictionary of V.42bis: strings as trees of characters, one tree a character, and the matching of strings that both ends do
//! alike.

use super::V42bisSettings;

/// Characters, one a tree (N4).
const CHARACTERS: u16 = 256;
/// Codewords that are commands (N6), before those of characters.
pub(super) const COMMANDS: u16 = 3;
/// The first codeword of a string longer than a character (N5).
pub(super) const FIRST_STRING: u16 = CHARACTERS + COMMANDS;
/// Bits of a codeword at the beginning (N3 + 1).
pub(super) const FIRST_WIDTH: u32 = 9;

/// A string: that of its parent, and one character more. Codewords of commands name none, so zero stands for none.
#[derive(Clone, Copy, Debug, Default)]
struct BtlzNode {
    octet: u8,
    depth: u8,
    parent: u16,
    child: u16,
    sibling: u16,
}

/// Strings by codeword, and the string that is being matched (V.42bis sections 6 and 7.3).
#[derive(Clone, Debug)]
pub(super) struct BtlzDictionary {
    nodes: Vec<BtlzNode>,
    longest: u8,
    /// The codeword of the next new string (C1).
    next: u16,
    matched: Option<u16>,
    /// A complete string that the next character, appended, makes a new one of.
    previous: Option<u16>,
    /// What was made of the string before: it is not matched yet, as the other end may not have it.
    newest: Option<u16>,
}

impl BtlzDictionary {
    pub(super) fn new(settings: V42bisSettings) -> BtlzDictionary {
        let mut nodes = vec![BtlzNode::default(); settings.codewords.into()];
        for (octet, node) in (0..=u8::MAX).zip(nodes.iter_mut().skip(COMMANDS.into())) {
            *node = BtlzNode { octet, depth: 1, ..BtlzNode::default() };
        }
        let longest = settings.longest;
        BtlzDictionary { nodes, longest, next: FIRST_STRING, matched: None, previous: None, newest: None }
    }

    /// Appends a character to the string that is being matched. If there is no such string, that one is complete: its codeword,
    /// and the character begins the next.
    pub(super) fn take(&mut self, octet: u8) -> Option<u16> {
        if let Some(matched) = self.matched {
            let longer = self.child(matched, octet).filter(|code| Some(*code) != self.newest);
            if longer.is_some() {
                self.matched = longer;
                return None;
            }
        }
        let complete = self.close();
        self.follow(octet);
        self.matched = Some(u16::from(octet) + COMMANDS);
        complete
    }

    /// Whether a string is being matched.
    pub(super) const fn is_matching(&self) -> bool {
        self.matched.is_some()
    }

    /// Ends the string that is being matched where it is.
    pub(super) fn close(&mut self) -> Option<u16> {
        let complete = self.matched.take();
        self.previous = complete.or(self.previous);
        complete
    }

    /// A codeword came: writes its string behind `out`. Nothing when there is no such string.
    pub(super) fn expand(&mut self, code: u16, out: &mut Vec<u8>) -> Option<()> {
        let from = out.len();
        self.write(code, out)?;
        self.follow(out[from]);
        // A new string may have taken the place of this one only if the other end is not as the Recommendation says.
        self.node(code)?;
        self.previous = Some(code);
        Some(())
    }

    fn node(&self, code: u16) -> Option<BtlzNode> {
        self.nodes.get(usize::from(code)).copied().filter(|node| node.depth > 0)
    }

    fn write(&self, code: u16, out: &mut Vec<u8>) -> Option<()> {
        let from = out.len();
        let mut node = self.node(code)?;
        loop {
            out.push(node.octet);
            if node.parent == 0 {
                break;
            }
            node = self.node(node.parent)?;
        }
        out[from..].reverse();
        Some(())
    }

    fn child(&self, of: u16, octet: u8) -> Option<u16> {
        let mut code = self.nodes[usize::from(of)].child;
        while code != 0 {
            let node = self.nodes[usize::from(code)];
            if node.octet == octet {
                return Some(code);
            }
            code = node.sibling;
        }
        None
    }

    /// The next string begins with `octet`: the one before becomes longer by it, unless that is known or too long (section 6.4).
    fn follow(&mut self, octet: u8) {
        let Some(previous) = self.previous.take() else { return };
        self.newest = None;
        let depth = self.nodes[usize::from(previous)].depth;
        if depth < self.longest && self.child(previous, octet).is_none() {
            let sibling = self.nodes[usize::from(previous)].child;
            self.nodes[usize::from(self.next)] =
                BtlzNode { octet, depth: depth + 1, parent: previous, child: 0, sibling };
            self.nodes[usize::from(previous)].child = self.next;
            self.newest = Some(self.next);
            self.recover();
        }
    }

    /// The next place for a string, from which the one that is there is taken: the next that none is longer by a character than
    /// (section 6.5).
    fn recover(&mut self) {
        loop {
            self.next += 1;
            if usize::from(self.next) >= self.nodes.len() {
                self.next = FIRST_STRING;
            }
            if self.nodes[usize::from(self.next)].child == 0 {
                break;
            }
        }
        let BtlzNode { parent, sibling, .. } = self.nodes[usize::from(self.next)];
        if parent == 0 {
            return;
        }
        self.nodes[usize::from(self.next)] = BtlzNode::default();
        if self.nodes[usize::from(parent)].child == self.next {
            self.nodes[usize::from(parent)].child = sibling;
            return;
        }
        let mut code = self.nodes[usize::from(parent)].child;
        while code != 0 {
            let node = &mut self.nodes[usize::from(code)];
            if node.sibling == self.next {
                node.sibling = sibling;
                return;
            }
            code = node.sibling;
        }
    }
}
