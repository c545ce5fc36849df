//! Commands without a terminal.

use super::place::{LoginPlace, gives_accounts};
use crate::files::noise;
use crate::pair::fast;

#[test]
fn a_command_has_its_output_its_errors_its_input_and_its_status() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\", \"root\"]");
    let (out, errors) = place.ends(7, &["site-b", "echo out; echo err >&2; exit 7"], b"");
    assert_eq!((&*out, &*errors), ("out\n", "err\n"));
    // What of the other site is there: the account, its groups, its environment.
    let (out, _) = place.ends(0, &["site-b", "id -un; id -Gn; echo $HOME; pwd; echo $SHELL $LANG"], b"");
    let home = place.file("home/alice").display().to_string();
    let expected = format!("alice\nalice helpers\n{home}\n{home}\n/bin/bash C.UTF-8\n");
    assert_eq!(out, expected);
    assert_eq!(place.ends(0, &["root@site-b", "id -u"], b"").0, "0\n");
    // Bytes as they are, both ways, to the end of the input.
    let bytes = noise(3_000_000, 5);
    let back = place.login(&["site-b", "cat"], &bytes);
    assert!(back.status.success() && back.stdout == bytes, "{} bytes", back.stdout.len());
    let (out, _) = place.ends(0, &["site-b", "wc -c"], &bytes);
    assert_eq!(out.trim(), "3000000");
    // A program that takes nothing of it, and one that is killed.
    place.ends(0, &["site-b", "true"], &bytes);
    place.ends(137, &["site-b", "kill -9 $$"], b"");
}

#[test]
fn many_small_commands_with_input_all_end() {
    if !gives_accounts() {
        return;
    }
    let place = LoginPlace::new(fast(), "accounts = [\"alice\"]");
    for number in 0..40_usize {
        let input = noise(number * 37 % 900, 3);
        let back = place.login(&["site-b", "cat"], &input);
        assert!(back.status.success() && back.stdout == input, "{number}: {}", place.logs());
    }
}

#[test]
fn nothing_is_allowed_that_is_not_named() {
    if !gives_accounts() {
        return;
    }
    let mut place = LoginPlace::new(fast(), "accounts = [\"alice\", \"carol\"]");
    for (who, expected) in [
        ("bob@site-b", "may not use that account"),
        ("root@site-b", "may not use that account"),
        ("carol@site-b", "there is no account carol"),
    ] {
        let (_, errors) = place.ends(255, &[who, "true"], b"");
        assert!(errors.contains(expected), "{who}: {errors}");
    }
    let (_, errors) = place.ends(255, &["site-x", "true"], b"");
    assert!(errors.contains("no peer is called `site-x`"), "{errors}");
    // The first site gives no logins.
    let mut back = place.daemon(1).command(&["login", "site-a", "true"]);
    let output = back.output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("no [[login]]"), "{errors}");
    place.stop(1);
    place.start(1, "");
    place.wait_for_session();
    let (_, errors) = place.ends(255, &["site-b", "true"], b"");
    assert!(errors.contains("no [[login]]"), "{errors}");
}
