//! The README stays short, and no document links to a file that does not exist.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every Markdown file below `folder`, without hidden and built folders.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let visible = entries.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        !name.starts_with('.') && name != "target"
    });
    visible
        .flat_map(|path| match path.is_dir() {
            true => documents(&path),
            false => Vec::from_iter(path.extension().is_some_and(|end| end == "md").then_some(path)),
        })
        .collect()
}

/// The targets of `[text](target)` and `![text](target)` outside code, without titles and anchors.
fn links(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second part stands between backquotes.
        let prose: String = line.split('`').step_by(2).collect();
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ', '#']).next());
        found.extend(targets.filter(|target| !target.is_empty()).map(str::to_owned));
    }
    found
}

#[test]
fn readme_is_at_most_120_lines_900_words_and_120_characters_wide() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let (lines, words) = (text.lines().count(), text.split_whitespace().count());
    assert!(lines <= 120, "README.md has {lines} lines");
    assert!(words <= 900, "README.md has {words} words");
    for (number, line) in text.lines().enumerate() {
        let width = line.chars().count();
        assert!(width <= 120, "README.md:{} has {width} characters", number + 1);
    }
}

#[test]
fn relative_links_lead_to_files_that_exist() {
    let documents = documents(&root());
    assert!(documents.len() > 20, "the walk found only {documents:?}");
    let mut broken = Vec::new();
    for document in documents {
        for link in links(&fs::read_to_string(&document).unwrap()) {
            let outside = ["http://", "https://", "mailto:"].iter().any(|scheme| link.starts_with(scheme));
            if !outside && !document.parent().unwrap().join(&link).exists() {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_guide_and_design_page_is_in_the_index() {
    let docs = root().join("docs");
    let index: Vec<_> = links(&fs::read_to_string(docs.join("README.md")).unwrap())
        .iter()
        .map(|link| docs.join(link))
        .collect();
    for page in documents(&docs) {
        assert!(
            page.ends_with("README.md") || index.contains(&page),
            "docs/README.md misses {}",
            page.display()
        );
    }
}

#[test]
fn links_are_found_outside_code_and_without_anchors() {
    let text =
        "see [a](x/y.md#part) and ![b](z.svg \"title\")\n```\n[c](no.md)\n```\n`[d](no.md)` [e](#here)";
    assert_eq!(links(text), ["x/y.md", "z.svg"]);
}
