//! Lists of objects, in the order of S3: that of the bytes of their keys (Amazon S3, `ListObjectsV2`).

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::Path;

/// What is listed.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// What keys begin with.
    pub(crate) prefix: String,
    /// Whether keys with a `/` behind the prefix are one entry, up to that.
    pub(crate) grouped: bool,
    /// Only what comes behind this.
    pub(crate) after: Option<String>,
    /// At most so many entries.
    pub(crate) most: usize,
}

/// A part of a list.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Keys and what their files say.
    pub(crate) objects: Vec<(String, Metadata)>,
    /// Beginnings that several keys have, up to a `/`.
    pub(crate) groups: Vec<String>,
    /// The last entry, when more follow.
    pub(crate) next: Option<String>,
}

impl Page {
    fn entries(&self) -> usize {
        self.objects.len() + self.groups.len()
    }
}

/// Lists objects below the folder of a bucket.
///
/// # Errors
/// Those of the file system, but for files that vanish meanwhile.
pub(crate) fn list(bucket: &Path, asked: &Asked) -> io::Result<Page> {
    let mut page = Page::default();
    let mut last = None;
    let (folder, _) = asked.prefix.rsplit_once('/').unwrap_or_default();
    let top = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    if folder.is_empty() || folder.split('/').all(|part| !matches!(part, "" | "." | "..")) {
        walk(bucket, &top, asked, &mut page, &mut last)?;
    }
    Ok(page)
}

/// Adds what is below the folder whose keys begin with `top`; answers false when the page is full.
fn walk(
    bucket: &Path,
    top: &str,
    asked: &Asked,
    page: &mut Page,
    last: &mut Option<String>,
) -> io::Result<bool> {
    for key in keys(&bucket.join(top), top)? {
        let is_folder = key.ends_with('/');
        let begins = key.starts_with(&asked.prefix);
        let leads_to = is_folder && asked.prefix.starts_with(&key);
        // Of a folder that lies before the last entry, nothing comes behind it, unless that entry is inside.
        let behind =
            asked.after.as_deref().is_none_or(|after| key.as_str() > after || after.starts_with(&key));
        if !(begins || leads_to) || !behind {
            continue;
        }
        if is_folder && !(asked.grouped && begins) {
            if !walk(bucket, &key, asked, page, last)? {
                return Ok(false);
            }
            continue;
        }
        if asked.after.as_ref().is_some_and(|after| key <= *after) {
            continue;
        }
        if page.entries() == asked.most {
            page.next = last.take();
            return Ok(false);
        }
        if is_folder {
            page.groups.push(key.clone());
        } else if let Some(metadata) = found(fs::metadata(bucket.join(&key)))? {
            page.objects.push((key.clone(), metadata));
        }
        *last = Some(key);
    }
    Ok(true)
}

/// The keys in one folder, in order; those of folders end in `/`, which gives the order of what is in them.
fn keys(folder: &Path, top: &str) -> io::Result<Vec<String>> {
    let mut keys = Vec::new();
    let Some(entries) = found(fs::read_dir(folder))? else { return Ok(keys) };
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
        keys.push(format!("{top}{name}{slash}"));
    }
    keys.sort_unstable();
    Ok(keys)
}

/// A result, or nothing when the file is gone.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use strait_testbed::Workdir;

    const KEYS: [&str; 9] =
        ["a-b", "a.b", "a/b/1", "a/b/2", "a/c", "a0", "inbox/x/1", "inbox/x/10", "inbox/y-1"];

    fn bucket() -> Workdir {
        let dir = Workdir::create().unwrap();
        for key in KEYS {
            let path = dir.path().join("bucket").join(key);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, key).unwrap();
        }
        dir
    }

    /// All pages of a list, in the order in which they come.
    fn pages(dir: &Path, prefix: &str, grouped: bool, most: usize) -> (Vec<String>, Vec<String>) {
        let mut asked = Asked { prefix: prefix.to_owned(), grouped, after: None, most };
        let (mut objects, mut groups) = (Vec::new(), Vec::new());
        loop {
            let page = list(dir, &asked).unwrap();
            assert!(page.entries() <= most);
            objects.extend(page.objects.into_iter().map(|(key, _)| key));
            groups.extend(page.groups);
            match page.next {
                None => return (objects, groups),
                Some(next) => asked.after = Some(next),
            }
        }
    }

    #[test]
    fn keys_come_in_the_order_of_their_bytes_whatever_the_page() {
        let dir = bucket();
        let sorted = BTreeSet::from(KEYS);
        for prefix in ["", "a", "a/", "a/b", "a/b/", "inbox/x", "inbox/x/1", "nothing", "../", "a//"] {
            let expected: Vec<&str> = sorted.iter().copied().filter(|key| key.starts_with(prefix)).collect();
            for most in [1, 2, 3, 100] {
                assert_eq!(
                    pages(&dir.path().join("bucket"), prefix, false, most).0,
                    expected,
                    "{prefix:?}, {most} a page"
                );
            }
        }
    }

    #[test]
    fn groups_are_what_keys_have_up_to_a_slash() {
        let dir = bucket();
        for most in [1, 2, 100] {
            let (objects, groups) = pages(&dir.path().join("bucket"), "", true, most);
            assert_eq!(
                (objects, groups),
                (vec!["a-b".into(), "a.b".into(), "a0".into()], vec!["a/".into(), "inbox/".into()])
            );
            let (objects, groups) = pages(&dir.path().join("bucket"), "inbox/", true, most);
            assert_eq!((objects, groups), (vec!["inbox/y-1".into()], vec!["inbox/x/".into()]));
        }
    }
}
