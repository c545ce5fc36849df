//! `docs/reference/configuration.md` and the template beside the parser.

use super::{NODE, parse};
use std::collections::BTreeSet;

/// Every section with a key that none has, so that the parser names the keys that it knows.
const PROBE: &str = "\
    zzzzzzzz = 1\n{NODE}zzzzzzzz = 1\n[link]\nzzzzzzzz = 1\n[session]\nzzzzzzzz = 1\n[[peer]]\nzzzzzzzz = 1\n\
    [peer.manual]\nzzzzzzzz = 1\n[peer.manual.esp]\nzzzzzzzz = 1\n[peer.manual.ah]\nzzzzzzzz = 1\n\
    [[compress]]\nzzzzzzzz = 1\n[[folder]]\nzzzzzzzz = 1\n\
    [[login]]\nzzzzzzzz = 1\n[kerberos]\nzzzzzzzz = 1\n\
    [broker]\nzzzzzzzz = 1\n[[broker.access]]\nzzzzzzzz = 1\n[directory]\nzzzzzzzz = 1\n";

/// The keys that the parser knows, with their sections.
fn known() -> BTreeSet<(String, String)> {
    let said = parse(&PROBE.replace("{NODE}", NODE)).unwrap_err().to_string();
    let mut keys = BTreeSet::new();
    for line in said.lines() {
        let Some((_, line)) = line.split_once("unknown key `zzzzzzzz` in ") else { continue };
        let (section, names) = line.split_once("; known are ").unwrap();
        keys.extend(names.split(", ").map(|name| (section.to_owned(), name.to_owned())));
    }
    keys
}

#[test]
fn every_key_has_a_line_in_the_reference_and_every_line_a_key() {
    let documented: BTreeSet<_> = strait_testdata::reference::rows("configuration.md")
        .iter()
        .map(|row| (row.heading.clone(), row.name().unwrap_or_default().to_owned()))
        .collect();
    let known = known();
    assert!(known.len() > 60, "{known:?}");
    assert_eq!(known, documented);
}

#[test]
fn every_key_is_in_the_template() {
    let template = crate::config::template(std::path::Path::new("strait.key"));
    let words: BTreeSet<_> =
        template.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
    let implied = |name: &str| name.ends_with("_file") && words.contains(name.trim_end_matches("_file"));
    for (section, name) in known() {
        assert!(words.contains(name.as_str()) || implied(&name), "{name} of {section}");
    }
}
