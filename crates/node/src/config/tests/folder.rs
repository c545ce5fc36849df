//! `[[folder]]` sections beside each other.

use super::*;

#[test]
fn a_folder_inside_one_that_peers_may_write_is_refused() {
    let both = |outer: &str, inner: &str| {
        let site = peer(KEY_A, "name = \"b\"\n");
        format!(
            "{site}[[folder]]\nname = \"in\"\npath = \"{inner}\"\nread = [\"b\"]\n[[folder]]\nname = \"out\"\npath = \"/srv\"\n{outer}"
        )
    };
    let said = errors(&both("write = [\"b\"]\n", "/srv/deep/in"));
    assert!(said.contains("inside `out` (line 12), where b may write"), "{said}");
    assert!(errors(&both("write = [\"b\"]\n", "/srv")).contains("inside `out`"), "the same folder twice");
    for (outer, inner) in [("read = [\"b\"]\n", "/srv/in"), ("write = [\"b\"]\n", "/srv-in")] {
        assert!(parse(&format!("{NODE}{}", both(outer, inner))).is_ok());
    }
}

/// A folder `in` of peers `b` and `c`, with these lines.
fn folder(lines: &str) -> String {
    let sites = [peer(KEY_A, "name = \"b\"\n"), peer(KEY_B, "name = \"c\"\n").replace("0.2/32", "0.3/32")];
    let sites = sites.concat();
    format!("{sites}[[folder]]\nname = \"in\"\npath = \"/srv\"\n{lines}")
}

#[test]
fn who_may_read_and_write_may_delete_unless_a_list_says_who() {
    let deleting =
        |lines: &str| parse(&format!("{NODE}{}", folder(lines))).unwrap().folders[0].delete.clone();
    assert_eq!(deleting("read = [\"b\", \"c\"]\nwrite = [\"b\"]\n"), ["b"]);
    assert_eq!(deleting("read = [\"b\"]\nwrite = [\"b\", \"c\"]\n"), ["b"], "c may write and not read");
    assert_eq!(deleting("write = [\"b\", \"c\"]\n"), [""; 0]);
    assert_eq!(deleting("read = [\"b\"]\nwrite = [\"b\", \"c\"]\ndelete = [\"c\"]\n"), ["c"]);
    assert_eq!(deleting("read = [\"b\"]\nwrite = [\"b\"]\ndelete = []\n"), [""; 0]);
    let said = errors(&folder("read = [\"b\"]\nwrite = [\"c\"]\ndelete = [\"b\"]\n"));
    assert!(said.contains("b is not in `write`"), "{said}");
}

#[test]
fn symlinks_stay_inside_unless_the_file_says_otherwise() {
    let symlinks = |lines: &str| parse(&format!("{NODE}{}", folder(lines))).unwrap().folders[0].symlinks;
    assert_eq!(symlinks(""), FolderSymlinks::Inside);
    assert_eq!(symlinks("symlinks = \"any\"\n"), FolderSymlinks::Any);
    assert_eq!(symlinks("symlinks = \"none\"\n"), FolderSymlinks::None);
    assert!(errors(&folder("symlinks = \"safe\"\n")).contains("symlinks"));
}
