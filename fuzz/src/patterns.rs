//! Include and exclude patterns of a peer: any bytes are some, and they match in the time of one pass.

use strait_transfer::path::{EntryPath, Printable};
use strait_transfer::source::patterns::Patterns;

/// Lines: the last is a path, those before it are rules, with `+` for an include.
pub fn check(data: &[u8]) {
    let mut lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let Some(path) = lines.pop() else { return };
    let mut patterns = Patterns::default();
    for line in lines {
        let (include, pattern) = match line.strip_prefix(b"+") {
            Some(pattern) => (true, pattern),
            None => (false, line),
        };
        let refused = patterns.push(include, pattern).is_err();
        assert!(refused == pattern.is_empty() || data.len() > 1 << 16);
    }
    let as_file = patterns.allow(path, false);
    let as_folder = patterns.allow(path, true);
    let mut all = patterns.clone();
    if all.push(false, b"**").is_ok() && all.push(true, b"*").is_ok() {
        // A rule at the end changes nothing that an earlier one decides.
        assert!(as_file || !all.allow(path, false));
        assert!(as_folder || !all.allow(path, true));
    }
    let shown = Printable(path).to_string();
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
    if let Ok(path) = EntryPath::new(path) {
        let names = path.as_bytes().split(|byte| *byte == b'/');
        assert!(names.clone().all(|name| !matches!(name, b"" | b"." | b"..") && !name.contains(&0)));
        assert_eq!(names.count(), 1 + std::iter::successors(path.parent(), EntryPath::parent).count());
    }
}
