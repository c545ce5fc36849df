//! `carrier` in `[[peer]]`.

use super::*;

#[test]
fn esp_goes_directly_behind_ip_only_where_the_file_says_so() {
    for (line, direct) in [("", false), ("carrier = \"udp\"\n", false), ("carrier = \"ip\"\n", true)] {
        let config = parse(&format!("{NODE}{}", peer(KEY_A, line))).unwrap();
        assert_eq!(config.peers[0].wants_direct(), direct, "{line}");
    }
}

#[test]
fn mistakes_are_named_with_their_place() {
    let needs = "`carrier = \"ip\"` needs sessions and `payloads = \"strait\"`: a probe tells whether protocol 50 passes; \
                 leave it out, or use [peer.manual]";
    for (lines, expected) in [
        ("carrier = \"pi\"", "7:11: `carrier` cannot be `pi`; did you mean `ip`?".to_owned()),
        ("carrier = 50", "7:11: `carrier` must be a string in quotes, not a whole number".to_owned()),
        ("carrier = \"ip\"\npayloads = \"standard\"", format!("7:11: {needs}")),
        ("carrier = \"ip\"\nkeying = \"sessionless\"", format!("7:11: {needs}")),
    ] {
        let found = errors(&peer(KEY_A, lines));
        let first = found.lines().next().unwrap().strip_prefix("dir/site.toml:").unwrap();
        assert_eq!(first, expected, "{lines}");
    }
}
