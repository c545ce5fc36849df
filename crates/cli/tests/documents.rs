//! The README stays short, no document links to a file that does not exist, and pages tell the steps of the code.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use strait_testdata::skip::{Need, skip};

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

/// The journeys of a packet: the module with the steps, and the headings of the same steps in ARCHITECTURE.md and in
/// docs/design/packet-path.md.
const JOURNEYS: [(&str, &str, &str); 2] = [
    ("crates/ipsec/src/outbound.rs", "## A packet's way out", "## Way out"),
    ("crates/ipsec/src/inbound.rs", "## A datagram's way in", "## Way in"),
];

/// `N. name` of each step in a module head, where two spaces end the name, and the files that the head names.
fn head(module: &str) -> (Vec<String>, Vec<String>) {
    let text = fs::read_to_string(root().join(module)).unwrap();
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let steps: Vec<&str> =
        lines.map(str::trim).filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).collect();
    let files = steps.iter().flat_map(|step| step.split([' ', ',', '(', ')']));
    let files = files.filter(|word| word.ends_with(".rs")).map(str::to_owned).collect();
    let name = |step: &&str| step.split("  ").next().unwrap_or_default().to_owned();
    (steps.iter().map(name).collect(), files)
}

/// The text below a heading, up to the next heading of the same level.
fn section(page: &str, heading: &str) -> String {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let (_, rest) =
        text.split_once(&format!("{heading}\n")).unwrap_or_else(|| panic!("{page}: no {heading}"));
    rest.split("\n## ").next().unwrap_or_default().to_owned()
}

#[test]
fn module_heads_architecture_and_diagrams_have_the_same_steps() {
    for (module, told, drawn) in JOURNEYS {
        let (steps, _) = head(module);
        assert!(steps.len() > 5, "{module}: {steps:?}");
        let told = section("ARCHITECTURE.md", told);
        let in_words = told.lines().filter_map(|line| line.split_once(". **"));
        let in_words = in_words
            .map(|(number, rest)| format!("{number}. {}", rest.split("**").next().unwrap_or_default()));
        assert_eq!(steps, Vec::from_iter(in_words), "{module} and ARCHITECTURE.md");
        let drawn = section("docs/design/packet-path.md", drawn);
        let nodes = drawn.lines().filter_map(|line| line.split_once("[\"")?.1.split_once("<br>"));
        let mut nodes: Vec<String> = nodes.map(|(step, _)| step.replacen(' ', ". ", 1)).collect();
        nodes.sort();
        nodes.dedup();
        assert_eq!(steps, nodes, "{module} and docs/design/packet-path.md");
    }
}

#[test]
fn files_of_module_heads_exist_and_architecture_names_them() {
    for (module, told, _) in JOURNEYS {
        let (_, files) = head(module);
        let told = section("ARCHITECTURE.md", told);
        assert!(files.len() > 5, "{module}: {files:?}");
        for file in files {
            let link = links(&told).into_iter().find(|link| link.ends_with(&format!("/{file}")));
            let link = link.unwrap_or_else(|| panic!("{module} names {file}, ARCHITECTURE.md does not"));
            assert!(root().join(&link).is_file(), "{link}");
        }
    }
}

#[test]
fn layers_of_the_architecture_are_the_members_of_the_workspace_in_their_order() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members =
        manifest.lines().filter_map(|line| line.trim().strip_prefix("\"crates/")?.split('"').next());
    let layers = section("ARCHITECTURE.md", "## Layers");
    let layers = layers.lines().filter_map(|line| line.strip_prefix("| [`")?.split('`').next());
    assert_eq!(Vec::from_iter(members), Vec::from_iter(layers));
}

/// How exposed `systemd-analyze security` finds the unit with drop-ins; nothing where there is no such program.
fn exposure(drop_ins: &[&str]) -> Option<f64> {
    let folder = std::env::temp_dir().join(format!("strait-unit-{}", std::process::id()));
    let unit = folder.join("strait@.service");
    let beside = folder.join("strait@.service.d");
    fs::create_dir_all(&beside).unwrap();
    fs::copy(root().join("packaging/strait@.service"), &unit).unwrap();
    for name in drop_ins {
        fs::copy(root().join("packaging/drop-ins").join(name), beside.join(name)).unwrap();
    }
    let mut command = Command::new("systemd-analyze");
    command.args(["security", "--offline=true", "--no-pager"]).arg(&unit);
    let said = command.env("SYSTEMD_UNIT_PATH", format!("{}:", folder.display())).output();
    fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8(said.ok()?.stdout).unwrap();
    let level = said.lines().rfind(|line| line.contains("Overall exposure level"))?;
    level.rsplit_once(": ")?.1.split_whitespace().next()?.parse().ok()
}

#[test]
fn every_unit_limits_its_memory_and_its_processes() {
    let files = fs::read_dir(root().join("packaging")).unwrap().map(|entry| entry.unwrap().path());
    let units: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "service")).collect();
    assert!(units.len() >= 3, "{units:?}");
    for unit in units {
        let text = fs::read_to_string(&unit).unwrap();
        for limit in ["MemoryMax=", "TasksMax="] {
            let value = text.lines().find_map(|line| line.strip_prefix(limit));
            assert!(value.is_some_and(|value| value != "infinity"), "{}: {limit}", unit.display());
        }
    }
}

#[test]
fn the_unit_and_its_drop_ins_are_as_closed_as_their_page_says() {
    let page = fs::read_to_string(root().join("packaging/README.md")).unwrap();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, _, level, _] = cells[..] else { return None };
        Some((name.trim_matches('`').to_owned(), level.parse::<f64>().ok()?))
    });
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), 1 + fs::read_dir(root().join("packaging/drop-ins")).unwrap().count(), "{rows:?}");
    for (name, documented) in rows {
        let drop_ins = if name == "none" { vec![] } else { vec![name.as_str()] };
        match exposure(&drop_ins) {
            Some(level) => assert!(level <= documented && level <= 2.0, "{name}: {level}"),
            None if skip(Need::Programs, "no systemd-analyze with --offline") => {}
            None => return,
        }
    }
}

/// The names of all processes that the programs start, as the sources have them.
fn processes(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let names = entries.flat_map(|path| {
        if path.is_dir() {
            return processes(&path);
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let parts = text.split("c\"strait-").skip(1);
        parts.filter_map(|part| Some(format!("strait-{}", part.split_once('"')?.0))).collect()
    });
    names.collect()
}

#[test]
fn every_process_is_in_the_table_of_processes() {
    let table = section("docs/guide/service.md", "## Processes");
    let crates =
        ["node", "cli", "broker", "directory"].map(|name| root().join("crates").join(name).join("src"));
    let started: Vec<String> = crates.iter().flat_map(|folder| processes(folder)).collect();
    assert!(started.len() > 10, "{started:?}");
    for name in started {
        assert!(table.contains(&format!("\n| `{name}` |")), "{name} is not in docs/guide/service.md");
    }
}
