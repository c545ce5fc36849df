use proptest::prelude::*;

use super::*;

fn rule(pattern: &str) -> Patterns {
    let mut patterns = Patterns::default();
    patterns.push(false, pattern.as_bytes()).unwrap();
    patterns
}

/// The rules of rsync(1), "PATTERN MATCHING RULES", with its own examples where it has one.
#[test]
fn patterns_match_as_rsync_says() {
    // Pattern, path, whether it is a folder, whether it matches.
    let cases = [
        ("*.o", "foo.o", false, true),
        ("*.o", "a/b/foo.o", false, true),
        ("*.o", "foo.o/x", false, false),
        ("foo", "a/foo", false, true),
        ("foo", "foobar", false, false),
        ("/foo", "foo", false, true),
        ("/foo", "a/foo", false, false),
        ("/foo/bar/", "foo/bar", true, true),
        ("/foo/bar/", "foo/bar", false, false),
        ("foo/", "a/foo", true, true),
        ("foo/", "a/foo", false, false),
        ("foo/bar", "foo/bar", false, true),
        ("foo/bar", "a/foo/bar", false, true),
        ("foo/bar", "afoo/bar", false, false),
        ("foo/*/bar", "foo/x/bar", false, true),
        ("foo/*/bar", "foo/x/y/bar", false, false),
        ("foo/**/bar", "foo/x/y/bar", false, true),
        ("/foo/*", "foo/a", false, true),
        ("/foo/*", "foo/a/b", false, false),
        ("/foo/**", "foo/a/b", false, true),
        ("a**z", "a/b/z", false, true),
        ("a**z", "x/a/z", false, true),
        ("**foo", "a/b/foo", false, true),
        ("**foo", "foo", false, true),
        ("dir/***", "dir", true, true),
        ("dir/***", "dir/a/b", false, true),
        ("dir/***", "dir", false, false),
        ("fo?", "foo", false, true),
        ("fo?", "fo", false, false),
        ("a?b", "a/b", false, false),
        ("[a-c]x", "bx", false, true),
        ("[a-c]x", "dx", false, false),
        ("[!a-c]x", "dx", false, true),
        ("[^a-c]x", "ax", false, false),
        ("[]x]", "]", false, true),
        ("[[:digit:]]*", "1a", false, true),
        ("[[:digit:]]*", "a1", false, false),
        ("[a", "[a", false, true),
        ("\\*x*", "*xy", false, true),
        ("\\*x*", "axy", false, false),
        ("a\\b", "a\\b", false, true),
        ("*", "a/b", false, true),
        ("", "a", false, false),
    ];
    for (pattern, path, is_folder, expected) in cases {
        if pattern.is_empty() {
            assert_eq!(Patterns::default().push(false, b""), Err(PatternError));
        } else {
            assert_eq!(!rule(pattern).allow(path.as_bytes(), is_folder), expected, "{pattern} {path}");
        }
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let mut patterns = Patterns::default();
    for (include, pattern) in [(true, "*/"), (true, "*.c"), (false, "*")] {
        patterns.push(include, pattern.as_bytes()).unwrap();
    }
    for (path, is_folder, expected) in [("a", true, true), ("a/b.c", false, true), ("a/b.h", false, false)] {
        assert_eq!(patterns.allow(path.as_bytes(), is_folder), expected, "{path}");
    }
    assert!(Patterns::default().allow(b"anything", false));
}

#[test]
fn patterns_are_bounded() {
    let mut patterns = Patterns::default();
    patterns.push(true, &[b'x'; MAX_PATTERN_BYTES]).unwrap();
    assert_eq!(patterns.push(true, b"x"), Err(PatternError));
}

#[test]
fn a_pattern_of_many_wildcards_ends() {
    let pattern = "a*".repeat(2000) + "b";
    assert!(rule(&pattern).allow("a".repeat(4000).as_bytes(), false));
}

/// The plain way, that tries everything.
fn tries(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=text.len()).any(|at| tries(rest, &text[at..])),
        [b'*', rest @ ..] => {
            let end = text.iter().position(|byte| *byte == b'/').unwrap_or(text.len());
            (0..=end).any(|at| tries(rest, &text[at..]))
        }
        [b'?', rest @ ..] => text.first().is_some_and(|byte| *byte != b'/') && tries(rest, &text[1..]),
        [byte, rest @ ..] => text.first() == Some(byte) && tries(rest, &text[1..]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn anchored_patterns_match_what_trying_everything_matches(
        pattern in "[ab*?/]{1,8}",
        path in "[ab]{1,3}(/[ab]{1,3}){0,3}",
    ) {
        let anchored = format!("/{}", pattern.trim_matches('/'));
        prop_assume!(anchored != "/" && !anchored.contains("***"));
        prop_assert_eq!(!rule(&anchored).allow(path.as_bytes(), false), tries(&anchored.as_bytes()[1..], path.as_bytes()));
    }

    #[test]
    fn any_bytes_are_a_pattern(pattern in proptest::collection::vec(any::<u8>(), 1..40), path in proptest::collection::vec(any::<u8>(), 1..40)) {
        let mut patterns = Patterns::default();
        patterns.push(false, &pattern).unwrap();
        let _ = patterns.allow(&path, true);
    }
}
