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
