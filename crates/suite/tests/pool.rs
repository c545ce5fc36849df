//! The program as `make test` runs it, on scripts that behave like binaries with tests.
#![allow(clippy::unwrap_used)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("strait-suite-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    /// A script that lists `tests`, one of them ignored, and runs each by its name; cargo's message about it.
    fn binary(&self, package: &str, tests: &[&str]) -> String {
        let program = self.0.join(package);
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in\n*--list*--ignored*) echo 'later: test'; exit ;;\n\
             *--list*) for each in {} later; do echo \"$each: test\"; done; exit ;;\nesac\n\
             for name; do :; done\ncase $name in\n*fails*) echo why it failed; exit 101 ;;\n\
             *hangs*) echo begun; sleep 1000 ;;\n*) echo not shown ;;\nesac\n",
            tests.join(" ")
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        format!(
            r#"{{"package_id":"path+file:///x/{package}#{package}@0.1.0","manifest_path":"{}","target":{{"name":"x","kind":["lib"]}},"profile":{{"test":true}},"executable":"{}"}}"#,
            self.0.join("Cargo.toml").display(),
            program.display()
        )
    }

    fn run(&self, messages: &[String], flags: &[&str]) -> Output {
        let file = self.0.join("messages");
        fs::write(&file, messages.join("\n")).unwrap();
        Command::new(env!("CARGO_BIN_EXE_strait-suite")).arg(file).args(flags).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn tests_of_all_binaries_run_and_what_is_left_is_named() {
    let folder = Folder::new("passes");
    let messages = [folder.binary("one", &["a", "b"]), folder.binary("two", &["c"])];
    let times = folder.0.join("times");
    let output = folder.run(&messages, &["--times", times.to_str().unwrap()]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.ends_with("3 passed, 0 failed\n") && !said.contains("not shown"), "{said}");
    assert!(said.contains("left to `make test-all`:\n      one::later\n      two::later\n"), "{said}");
    let mut names: Vec<String> =
        read(&times).lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["one::a", "one::b", "two::c"]);
    let output = folder.run(&messages, &["--all", "one::"]);
    assert!(text(&output).ends_with("3 passed, 0 failed\n"), "{}", text(&output));
}

#[test]
fn what_fails_or_hangs_is_named_with_its_output() {
    let folder = Folder::new("fails");
    let messages = [folder.binary("one", &["fails", "hangs", "passes"])];
    let failed = folder.0.join("failed");
    let output = folder.run(&messages, &["--limit", "1", "--failed", failed.to_str().unwrap()]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("one::fails failed after ") && said.contains("why it failed\n"), "{said}");
    assert!(said.contains("one::hangs hung and was ended after ") && said.contains("begun\n"), "{said}");
    assert!(said.ends_with("1 passed, 2 failed\n"), "{said}");
    assert_eq!(read(&failed), "one::fails\none::hangs\n");
}

#[test]
fn names_that_no_test_has_are_an_error() {
    let folder = Folder::new("none");
    let messages = [folder.binary("one", &["a"])];
    let output = folder.run(&messages, &["nothing"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no test has such a name"));
}
