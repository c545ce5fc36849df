//! Include and exclude patterns as rsync(1) has them, section "PATTERN MATCHING RULES".
//!
//! The first rule that matches decides; without one, an entry is included. What is below an excluded folder is not looked at. `*` and `?`
//! match all but slashes, `**` matches slashes too, `[...]` is a set. A slash in front means the top of the transfer, one behind means
//! folders only. A pattern with another slash or `**` is compared with the path, from any folder on, others with the last name.
//!
//! Why no crate: `globset` 0.4 allows `**` only as a whole name, and takes patterns that are UTF-8. This is one pass over the path for all
//! places where a pattern can be, so that a peer's pattern cannot cost more than its length times the path's.

/// Bytes of all patterns together at most: what one message carries.
pub const MAX_PATTERN_BYTES: usize = 64 << 10;

/// The patterns are longer than [`MAX_PATTERN_BYTES`], or one is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a pattern is empty, or all together are longer than 64 KiB")]
pub struct PatternError;

/// Rules in their order.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    rules: Vec<PatternRule>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct PatternRule {
    include: bool,
    folders_only: bool,
    /// Whether the pattern begins at the beginning of what it is compared with.
    anchored: bool,
    /// Whether it is compared with the whole path.
    path: bool,
    tokens: Vec<PatternToken>,
}

/// What matches one or some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternToken {
    Byte(u8),
    /// `?`
    One,
    /// `*`
    Any,
    /// `**`
    AnyPath,
    /// `[...]`: ranges of bytes; whether it is what is not in them.
    Set(Vec<(u8, u8)>, bool),
}

impl Patterns {
    /// Adds a rule behind those that are there.
    ///
    /// # Errors
    ///
    /// If there is nothing in it, or too much in all.
    pub fn push(&mut self, include: bool, pattern: &[u8]) -> Result<(), PatternError> {
        self.bytes += pattern.len();
        if pattern.is_empty() || self.bytes > MAX_PATTERN_BYTES {
            return Err(PatternError);
        }
        match pattern.strip_suffix(b"/***") {
            // The folder and all that is in it.
            Some(folder) => {
                self.rules.push(PatternRule::new(include, &[folder, b"/"].concat()));
                self.rules.push(PatternRule::new(include, &[folder, b"/**"].concat()));
            }
            None => self.rules.push(PatternRule::new(include, pattern)),
        }
        Ok(())
    }

    /// Whether an entry is included.
    #[must_use]
    pub fn allow(&self, path: &[u8], is_folder: bool) -> bool {
        let rule = self.rules.iter().find(|rule| rule.matches(path, is_folder));
        rule.is_none_or(|rule| rule.include)
    }
}

impl PatternRule {
    fn new(include: bool, pattern: &[u8]) -> PatternRule {
        let (pattern, folders_only) = match pattern {
            [rest @ .., b'/'] if !rest.is_empty() => (rest, true),
            pattern => (pattern, false),
        };
        let (pattern, anchored) = match pattern {
            [b'/', rest @ ..] => (rest, true),
            pattern => (pattern, false),
        };
        let wild = pattern.iter().any(|byte| b"*?[".contains(byte));
        let tokens = match wild {
            true => read_tokens(pattern),
            // Without a wildcard, a backslash is one.
            false => pattern.iter().map(|byte| PatternToken::Byte(*byte)).collect(),
        };
        let path = anchored || pattern.contains(&b'/') || tokens.contains(&PatternToken::AnyPath);
        PatternRule { include, folders_only, anchored, path, tokens }
    }

    fn matches(&self, path: &[u8], is_folder: bool) -> bool {
        if self.folders_only && !is_folder {
            return false;
        }
        let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let text = if self.path { path } else { last };
        // One place more than there are tokens: the end.
        let mut now = Places::new(self.tokens.len());
        now.reach(0, &self.tokens);
        for (at, byte) in text.iter().enumerate() {
            let mut next = Places::new(self.tokens.len());
            for place in now.all() {
                next.advance(place, *byte, &self.tokens);
            }
            if *byte == b'/' && !self.anchored && at + 1 < text.len() {
                next.reach(0, &self.tokens);
            }
            now = next;
        }
        now.0[self.tokens.len()]
    }
}

/// The places in a pattern that some bytes may have led to.
struct Places(Vec<bool>);

impl Places {
    fn new(tokens: usize) -> Places {
        Places(vec![false; tokens + 1])
    }

    fn all(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().filter(|(_, is)| **is).map(|(place, _)| place)
    }

    /// A place is reached, and those that follow it without a byte.
    fn reach(&mut self, place: usize, tokens: &[PatternToken]) {
        let mut place = place;
        while !self.0[place] {
            self.0[place] = true;
            if let Some(PatternToken::Any | PatternToken::AnyPath) = tokens.get(place) {
                place += 1;
            }
        }
    }

    fn advance(&mut self, place: usize, byte: u8, tokens: &[PatternToken]) {
        match tokens.get(place) {
            Some(PatternToken::AnyPath) => self.reach(place, tokens),
            Some(PatternToken::Any) if byte != b'/' => self.reach(place, tokens),
            Some(PatternToken::Byte(expected)) if byte == *expected => self.reach(place + 1, tokens),
            Some(PatternToken::One) if byte != b'/' => self.reach(place + 1, tokens),
            Some(PatternToken::Set(ranges, negated)) if byte != b'/' => {
                let is_in = ranges.iter().any(|(first, last)| (*first..=*last).contains(&byte));
                if is_in != *negated {
                    self.reach(place + 1, tokens);
                }
            }
            _ => {}
        }
    }
}

fn read_tokens(mut pattern: &[u8]) -> Vec<PatternToken> {
    let mut tokens = Vec::new();
    while let [first, rest @ ..] = pattern {
        pattern = rest;
        tokens.push(match first {
            b'*' if rest.first() == Some(&b'*') => {
                pattern = &rest[rest.iter().take_while(|byte| **byte == b'*').count()..];
                PatternToken::AnyPath
            }
            b'*' => PatternToken::Any,
            b'?' => PatternToken::One,
            b'[' => match read_set(rest) {
                Some((set, after)) => {
                    pattern = after;
                    set
                }
                None => PatternToken::Byte(b'['),
            },
            b'\\' if !rest.is_empty() => {
                pattern = &rest[1..];
                PatternToken::Byte(rest[0])
            }
            byte => PatternToken::Byte(*byte),
        });
    }
    tokens
}

/// A set behind its opening bracket, and what follows it. None if it is not closed.
fn read_set(pattern: &[u8]) -> Option<(PatternToken, &[u8])> {
    let (negated, mut rest) = match pattern {
        [b'!' | b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut ranges = Vec::new();
    let mut is_first = true;
    loop {
        (ranges, rest) = match rest {
            [b']', after @ ..] if !is_first => return Some((PatternToken::Set(ranges, negated), after)),
            [b'[', b':', after @ ..] => {
                let end = after.windows(2).position(|two| two == b":]")?;
                ranges.extend_from_slice(class(&after[..end])?);
                (ranges, &after[end + 2..])
            }
            [first, b'-', last, after @ ..] if *last != b']' => {
                ranges.push((*first, *last));
                (ranges, after)
            }
            [b'\\', byte, after @ ..] | [byte, after @ ..] => {
                ranges.push((*byte, *byte));
                (ranges, after)
            }
            [] => return None,
        };
        is_first = false;
    }
}

/// The classes of POSIX, for ASCII.
fn class(name: &[u8]) -> Option<&'static [(u8, u8)]> {
    Some(match name {
        b"alpha" => &[(b'a', b'z'), (b'A', b'Z')],
        b"digit" => &[(b'0', b'9')],
        b"alnum" => &[(b'a', b'z'), (b'A', b'Z'), (b'0', b'9')],
        b"upper" => &[(b'A', b'Z')],
        b"lower" => &[(b'a', b'z')],
        b"space" => &[(9, 13), (b' ', b' ')],
        b"blank" => &[(9, 9), (b' ', b' ')],
        b"punct" => &[(33, 47), (58, 64), (91, 96), (123, 126)],
        b"xdigit" => &[(b'0', b'9'), (b'a', b'f'), (b'A', b'F')],
        b"cntrl" => &[(0, 31), (127, 127)],
        b"graph" => &[(33, 126)],
        b"print" => &[(32, 126)],
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
