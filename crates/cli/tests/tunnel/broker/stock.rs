//! Stock programs on both sides: they open what Strait stored, and Strait fetches what they wrote.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use strait_testbed::outside::{self, PYTHON};
use strait_testdata::skip::{Need, skip};

use super::{Scene, allowed_with_broker, files};
use crate::files::noise;

/// Whether `age` and `zstd` are here.
fn has_programs() -> bool {
    ["age", "zstd"].into_iter().all(outside::has)
}

/// Whether Python has Ed25519.
fn has_python() -> bool {
    let found = Command::new(PYTHON).args(["-c", "import cryptography"]).output();
    found.is_ok_and(|it| it.status.success())
        || skip(Need::Python, "no python-cryptography (scripts/setup test)")
}

/// What a command line of a shell prints; its words `$0`, `$1` and on are `words`.
pub(super) fn shell(line: &str, words: &[&Path]) -> Vec<u8> {
    let output =
        Command::new("bash").args(["-e", "-o", "pipefail", "-c", line]).args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// A node's key as OpenSSH has it, for `age`: the private one, and the public one beside it.
fn openssh(scene: &Scene) -> std::path::PathBuf {
    let site = &scene.post.receiver;
    let file = scene.dir.path().join("id_ed25519");
    let mut export = Command::new(site.program());
    export.args(["keys", "ssh", "export"]).arg(site.key_file()).arg("--out").arg(&file);
    let output = export.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    file
}

#[test]
fn age_and_zstd_open_an_object_in_the_store() {
    if !allowed_with_broker() || !has_programs() {
        return;
    }
    let mut scene = Scene::new();
    scene.start_sender();
    let content = [b"a line that comes again\n".repeat(100_000), noise(11_000_000, 6)].concat();
    fs::write(scene.source().join("file"), &content).unwrap();
    scene.good(scene.put(&["file"]));
    let pieces = files(&scene.objects().join("contents"));
    assert!(pieces.len() > 2, "{pieces:?}");
    let key = openssh(&scene);
    // In the order of their names they are the object.
    let words: Vec<&Path> = [key.as_path()].into_iter().chain(pieces.iter().map(AsRef::as_ref)).collect();
    let opened = shell("cat \"$@\" | age -d -i \"$0\" | zstd -d", &words);
    assert!(opened == content);
}

/// What puts an object into the store without Strait.
pub(super) struct Outside<'a> {
    pub(super) scene: &'a Scene,
    /// Its name, 32 digits of hexadecimal.
    pub(super) id: &'a str,
    pub(super) serial: u64,
}

impl Outside<'_> {
    /// The manifest of files, as the test's tool writes it.
    pub(super) fn manifest(&self, files: &[(&str, &Path)]) -> Vec<u8> {
        let scene = self.scene;
        let now = String::from_utf8(shell("date +%s", &[])).unwrap();
        let mut tool = Command::new(PYTHON);
        tool.arg("-B").arg(outside::file("manifest.py")).arg(scene.post.sender.key_file());
        tool.args([self.id, &self.serial.to_string(), now.trim(), "inbox", scene.post.receiver.public_key()]);
        tool.args(files.iter().map(|(name, path)| format!("{name}={}", path.display())));
        let output = tool.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Seals bytes for the receiver.
    pub(super) fn seal(&self, plain: &[u8]) -> Vec<u8> {
        let key = self.scene.dir.path().join("receiver.pub");
        if !key.exists() {
            let site = &self.scene.post.receiver;
            let line =
                Command::new(site.program()).args(["keys", "ssh", "public", site.public_key()]).output();
            fs::write(&key, line.unwrap().stdout).unwrap();
        }
        let mut pipe = Command::new("bash");
        pipe.args(["-e", "-o", "pipefail", "-c", "zstd -3 -q | age -R \"$0\""]).arg(&key);
        let mut pipe = pipe.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = pipe.stdin.take().unwrap();
        let plain = plain.to_vec();
        let writer = std::thread::spawn(move || input.write_all(&plain).unwrap());
        let output = pipe.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success());
        output.stdout
    }

    /// Puts the sealed manifest and contents where a broker keeps them.
    pub(super) fn store(&self, manifest: &[u8], contents: &[u8]) {
        const PIECE: usize = 5 << 20;
        let scene = self.scene;
        let hex = |site: &strait_testbed::Site| -> String {
            let mut tool = Command::new(PYTHON);
            tool.arg("-B").arg(outside::file("manifest.py")).arg("--public").arg(site.key_file());
            String::from_utf8(tool.output().unwrap().stdout).unwrap().trim().to_owned()
        };
        let (sender, receiver) = (hex(&scene.post.sender), hex(&scene.post.receiver));
        let folder = scene.objects().join("contents").join(&sender).join(self.id);
        fs::create_dir_all(&folder).unwrap();
        for (number, piece) in contents.chunks(PIECE).enumerate() {
            fs::write(folder.join(format!("{number:012}")), piece).unwrap();
        }
        let made: i64 = String::from_utf8(shell("date +%s", &[])).unwrap().trim().parse().unwrap();
        let expires = made + 86_400;
        let letter = format!(
            "t-{sender}-{}-{made:016x}-{expires:016x}-{:016x}-{:016x}-01",
            self.id,
            manifest.len(),
            contents.len()
        );
        let inbox = scene.objects().join("inbox").join(receiver);
        fs::create_dir_all(&inbox).unwrap();
        fs::write(inbox.join(letter), manifest).unwrap();
    }
}

/// Whether an object can be made outside.
pub(super) fn has_tools() -> bool {
    has_programs() && has_python()
}

#[test]
fn what_zstd_age_and_another_manifest_writer_made_is_fetched() {
    if !allowed_with_broker() || !has_tools() {
        return;
    }
    let mut scene = Scene::new();
    let (one, two) = (scene.source().join("one"), scene.source().join("two"));
    fs::write(&one, b"made outside\n".repeat(9_000)).unwrap();
    fs::write(&two, noise(300_000, 2)).unwrap();
    let outside = Outside { scene: &scene, id: "00112233445566778899aabbccddeeff", serial: 1 };
    let manifest = outside.seal(&outside.manifest(&[("b/two", two.as_path()), ("one", one.as_path())]));
    let contents = outside.seal(&[fs::read(&two).unwrap(), fs::read(&one).unwrap()].concat());
    outside.store(&manifest, &contents);
    scene.start_receiver();
    scene.good(scene.fetch_into_folders());
    for (name, source) in [("b/two", &two), ("one", &one)] {
        assert!(fs::read(scene.inbox().join(name)).unwrap() == fs::read(source).unwrap(), "{name}");
    }
}
