//! Symlinks that a sender may have made.

use super::FolderError;

/// A rule for the symlinks of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SymlinkRule {
    /// Those that lead to no place outside of the folder, whatever other symlinks of senders are there.
    #[default]
    Inside,
    /// All, as they are.
    Any,
    /// None.
    None,
}

impl SymlinkRule {
    /// Checks that a symlink with this target may be made in a folder that is `depth` names below the permitted one.
    pub(crate) fn check(self, depth: usize, target: &[u8]) -> Result<(), FolderError> {
        match self {
            SymlinkRule::Inside if !stays_inside(depth, target) => Err(FolderError::LeadsOut),
            SymlinkRule::Inside | SymlinkRule::Any => Ok(()),
            SymlinkRule::None => Err(FolderError::NoSymlinks),
        }
    }
}

/// True if a target stays inside: it is relative, and `..` stands before all names, no more often than there are folders above. Behind a
/// name, which may be another symlink, `..` would go up from where that leads. So each symlink leads down from a folder above it, and
/// all of them together never lead out.
fn stays_inside(depth: usize, target: &[u8]) -> bool {
    let mut names = target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let up = names.by_ref().take_while(|name| *name == b"..").count();
    target.first() != Some(&b'/') && up <= depth && names.all(|name| name != b"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_goes_up_before_it_goes_down_and_not_above_the_folder() {
        let inside = |depth, target: &str| SymlinkRule::Inside.check(depth, target.as_bytes()).is_ok();
        for (depth, target) in [(0, "a/b"), (0, "."), (0, "./a//b/"), (1, ".."), (2, "../../a"), (0, "..a")] {
            assert!(inside(depth, target), "{target}");
        }
        for (depth, target) in
            [(0, "/"), (9, "/a"), (0, ".."), (1, "../.."), (0, "./../a"), (2, "a/.."), (9, "../a/../../b")]
        {
            assert!(!inside(depth, target), "{target}");
        }
    }

    #[test]
    fn the_other_rules_take_all_and_none() {
        assert!(SymlinkRule::Any.check(0, b"/etc/shadow").is_ok());
        assert_eq!(SymlinkRule::None.check(0, b"a"), Err(FolderError::NoSymlinks));
    }
}
