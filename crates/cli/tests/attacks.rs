//! The tables of attacks and of others' bugs stay true: each test that they name exists, and each attack has one or says why not.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every Rust file below `folder`, by its path from there.
fn sources(folder: &Path, below: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(below).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => sources(folder, &path),
            false if path.extension().is_some_and(|end| end == "rs") => {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                BTreeMap::from([(name, fs::read_to_string(&path).unwrap())])
            }
            false => BTreeMap::new(),
        })
        .collect()
}

/// A row of a table: the attack, what is done, and the names in backquotes of the column for tests.
#[derive(Clone)]
struct Row {
    attack: String,
    done: String,
    tests: Vec<String>,
}

/// The rows of every table with four columns or more; heads and lines of dashes are none.
fn rows(page: &str) -> Vec<Row> {
    let heads = ["| Attack |", "| Report |"];
    let lines = page
        .lines()
        .filter(|line| line.starts_with("| ") && !heads.iter().any(|head| line.starts_with(head)));
    lines
        .filter_map(|line| {
            let columns: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [attack, _, done, tests, ..] = columns[..] else { return None };
            let tests = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            Some(Row { attack: attack.to_owned(), done: done.to_owned(), tests })
        })
        .collect()
}

/// Whether `name`, as `file.rs::test` below crates/, is a test there.
fn is_a_test(files: &BTreeMap<String, String>, name: &str) -> bool {
    let Some((file, test)) = name.rsplit_once("::") else { return false };
    let Some(text) = files.get(file) else { return false };
    let Some((before, _)) = text.split_once(&format!("fn {test}(")) else { return false };
    // The attribute stands before it, and no other function in between.
    before.rsplit("fn ").next().is_some_and(|attributes| attributes.contains("test]"))
}

#[test]
fn every_test_that_the_tables_name_exists() {
    let folder = root().join("crates");
    let files = sources(&folder, &folder);
    let tables = ["docs/attacks.md", "docs/known-bugs.md"]
        .map(|page| rows(&fs::read_to_string(root().join(page)).unwrap()));
    assert!(tables.iter().all(|rows| rows.len() > 30), "{:?} rows were found", tables.map(|rows| rows.len()));
    let rows = tables.concat();
    let missing: Vec<String> = rows
        .iter()
        .flat_map(|row| row.tests.iter().filter(|test| !is_a_test(&files, test)))
        .map(|test| format!("{test} (write it as `cli/tests/attacks.rs::name`)"))
        .collect();
    assert!(missing.is_empty(), "tests that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn every_attack_has_a_test_or_a_reason() {
    for row in rows(&fs::read_to_string(root().join("docs/attacks.md")).unwrap()) {
        let excused = row.done.contains("Does not apply") || row.done.contains("Not defended yet");
        assert!(excused || !row.tests.is_empty(), "no test: {}", row.attack);
    }
}

#[test]
fn a_name_that_is_no_test_is_found_out() {
    let files = BTreeMap::from([(
        "a/b.rs".to_owned(),
        "fn helper() {}\n#[test]\nfn real() {}\nfn after() {}".to_owned(),
    )]);
    assert!(is_a_test(&files, "a/b.rs::real"));
    for wrong in ["a/b.rs::gone", "a/b.rs::helper", "a/b.rs::after", "a/c.rs::real", "real"] {
        assert!(!is_a_test(&files, wrong), "{wrong}");
    }
}
