//! Binaries with tests, as cargo names them, and the tests in each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Packages whose integration tests run whole hosts, programs or kernels, and so wait most of the time.
const HOSTS: [&str; 9] = [
    "strait",
    "strait-broker",
    "strait-demo",
    "strait-directory",
    "strait-kerberos",
    "strait-lab-cli",
    "strait-node",
    "strait-ssh",
    "strait-testbed",
];

/// Tests that compare a tunnel with what was computed of it, by the beginnings of their names: they need processors at once when they want
/// them.
const QUIET: [&str; 3] = ["strait/advise::", "strait/tunnel::byte_cache::", "strait/tunnel::why::"];

/// A kind of tests, by what they take of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Compares a tunnel with what was computed of it: one at a time, with the highest priority.
    Quiet,
    /// Runs whole hosts, and waits most of the time.
    Hosts,
    /// Computes.
    Computing,
}

impl Group {
    /// Every group.
    pub(crate) const ALL: [Group; 3] = [Group::Quiet, Group::Hosts, Group::Computing];
}

/// A program that has tests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Binary {
    /// The crate, and for integration tests the target: `strait-wire`, `strait/tunnel`.
    pub(crate) name: String,
    /// The file to run.
    pub(crate) program: PathBuf,
    /// The folder of the package, where its tests run.
    pub(crate) folder: PathBuf,
    /// Beside which others its tests run, but for those that need quiet.
    group: Group,
}

impl Binary {
    /// The name of a test with that of its binary: `strait-wire::esp::tests::round_trip`.
    pub(crate) fn full_name(&self, test: &str) -> String {
        format!("{}::{test}", self.name)
    }

    /// Beside which others a test runs.
    pub(crate) fn group_of(&self, test: &str) -> Group {
        let name = self.full_name(test);
        if QUIET.iter().any(|those| name.starts_with(those)) { Group::Quiet } else { self.group }
    }

    /// The program with these arguments, in the environment that cargo gives to tests, started by the words `before`.
    pub(crate) fn command(&self, before: &[&str], arguments: &[&str]) -> Command {
        let mut command = match before {
            [] => Command::new(&self.program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
        };
        command.args(arguments).current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// The binaries that cargo's messages name, each once, in a steady order.
pub(crate) fn find(messages: &str) -> Result<Vec<Binary>, String> {
    let mut found = BTreeMap::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value =
            serde_json::from_str(line).map_err(|error| format!("cargo's message: {error}"))?;
        if let Some(binary) = test_binary(&message) {
            found.insert(binary.name.clone(), binary);
        }
    }
    if found.is_empty() {
        return Err("cargo's messages name no binary with tests".to_owned());
    }
    Ok(found.into_values().collect())
}

/// The binary of a message about one with tests.
fn test_binary(message: &Value) -> Option<Binary> {
    let program = message["executable"].as_str()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = package(message["package_id"].as_str()?);
    let (target, kind) = (message["target"]["name"].as_str()?, message["target"]["kind"][0].as_str()?);
    let name = match kind {
        "lib" => package.clone(),
        "test" => format!("{package}/{target}"),
        other => format!("{package}/{other}/{target}"),
    };
    let group = match kind {
        "test" if HOSTS.contains(&package.as_str()) => Group::Hosts,
        _ => Group::Computing,
    };
    Some(Binary { name, program: program.into(), folder: folder.to_owned(), group })
}

/// The name in a package's identifier: `path+file:///…/crates/wire#strait-wire@0.1.0`, or `…/strait#0.1.0` for a folder of that name.
fn package(identifier: &str) -> String {
    let (path, fragment) = identifier.rsplit_once('#').unwrap_or(("", identifier));
    let name = match fragment.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next().unwrap_or(path),
    };
    name.to_owned()
}

/// The tests of each binary, and whether only `make test-all` runs them.
pub(crate) fn list(binaries: &[Binary]) -> Result<Vec<Vec<(String, bool)>>, String> {
    std::thread::scope(|scope| {
        // One thread a binary: most of the time goes into reading the programs from the disk.
        let threads: Vec<_> = binaries.iter().map(|binary| scope.spawn(move || list_one(binary))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a thread ended early".to_owned())?)
            .collect()
    })
}

fn list_one(binary: &Binary) -> Result<Vec<(String, bool)>, String> {
    let names = |extra: &[&str]| -> Result<Vec<String>, String> {
        let arguments = [&["--list", "--format=terse"], extra].concat();
        let output = binary.command(&[], &arguments).output();
        let output = output.map_err(|error| format!("{}: {error}", binary.program.display()))?;
        if !output.status.success() {
            return Err(format!("{} --list: {}", binary.program.display(), output.status));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
    };
    let all = names(&[])?;
    let ignored = names(&["--ignored"])?;
    Ok(all.into_iter().map(|name| (name.clone(), ignored.contains(&name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(kind: &str, id: &str, target: &str, test: bool) -> String {
        json!({
            "reason": "compiler-artifact", "package_id": id, "manifest_path": "/p/crates/x/Cargo.toml",
            "target": {"name": target, "kind": [kind]}, "profile": {"test": test}, "executable": "/t/x-1",
        })
        .to_string()
    }

    #[test]
    fn binaries_with_tests_are_found_by_name() {
        let messages = [
            message("lib", "path+file:///p/crates/wire#strait-wire@0.1.0", "strait_wire", true),
            message("test", "path+file:///p/strait#0.1.0", "tunnel", true),
            message("bin", "path+file:///p/crates/cli#strait@0.1.0", "strait", false),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let found = find(&messages.join("\n")).unwrap();
        let names: Vec<(&str, Group)> = found.iter().map(|it| (it.name.as_str(), it.group)).collect();
        assert_eq!(names, [("strait-wire", Group::Computing), ("strait/tunnel", Group::Hosts)]);
        assert_eq!(found[0].folder, Path::new("/p/crates/x"));
        assert_eq!(found[1].full_name("a::b"), "strait/tunnel::a::b");
        let groups = ["why::it_is_so", "whys"].map(|test| found[1].group_of(test));
        assert_eq!(groups, [Group::Quiet, Group::Hosts]);
    }

    #[test]
    fn messages_without_tests_and_broken_ones_are_refused() {
        assert!(find("warning: x\n").unwrap_err().contains("no binary"));
        assert!(find("{\"reason\":").unwrap_err().contains("cargo's message"));
    }
}
