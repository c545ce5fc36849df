//! Sealed objects of the programs `age` and `zstd`, which are opened here, and ours, which they open.
#![allow(clippy::unwrap_used)]

#[path = "stock/upload.rs"]
mod upload;

use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use strait_keying::PrivateKey;
use strait_testdata::skip::{Need, skip};
use strait_transfer::TransferId;
use strait_transfer::sealed::frames::SizePadding;
use strait_transfer::sealed::object::{self, ObjectSealing};
use strait_transfer::sealed::{
    AgeIdentity, AgeRecipient, Contents, Manifest, ObjectSeed, SealedEntry, SealedKind,
};

/// 3 MB of text and 200 kB that do not compress.
fn bytes() -> Vec<u8> {
    let mut noise = vec![0; 200_000];
    blake3::Hasher::new().finalize_xof().fill(&mut noise);
    [b"a line of text that comes again\n".repeat(100_000), noise].concat()
}

struct One(Vec<u8>);

impl Contents for One {
    fn open(&mut self, _: &[u8]) -> std::io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(Cursor::new(&self.0)))
    }

    fn unchanged(&mut self, _: &SealedEntry) -> std::io::Result<bool> {
        Ok(true)
    }
}

fn sealed(recipients: &[AgeRecipient], bytes: Vec<u8>) -> Vec<u8> {
    let kind = SealedKind::File { size: bytes.len() as u64, root: [0; 32] };
    let mut manifest = Manifest {
        transfer: TransferId::from_bytes([1; 16]),
        sender: PrivateKey::generate(&[1; 32]).public(),
        serial: 1,
        made: 0,
        expires: i64::MAX,
        folder: "inbox".to_owned(),
        below: Vec::new(),
        recipients: recipients.to_vec(),
        entries: vec![SealedEntry { path: b"a".to_vec(), mode: 0o600, mtime: 0, kind }],
    };
    let sealing = ObjectSealing { recipients, level: 3, padding: SizePadding::Padme };
    object::seal(&mut manifest, &mut One(bytes), Vec::new(), ObjectSeed::new([7; 32]), &sealing).unwrap()
}

fn opened(bytes: &[u8], identity: &AgeIdentity<'_>) -> Vec<u8> {
    let mut plain = Vec::new();
    object::open_stream(bytes, identity).unwrap().read_to_end(&mut plain).unwrap();
    plain
}

/// Runs a command line of the shell in `folder`; nothing when a program is missing, which `skip` keeps account of.
fn shell(folder: &Path, line: &str) -> Option<Vec<u8>> {
    for program in ["age", "age-keygen", "zstd", "ssh-keygen"] {
        let found =
            Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
        if !(found.unwrap().success() || skip(Need::Programs, &format!("no {program}"))) {
            return None;
        }
    }
    let output =
        Command::new("bash").args(["-e", "-o", "pipefail", "-c", line]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("strait-stock-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        use std::os::unix::fs::OpenOptionsExt;
        let file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.0.join(name));
        file.unwrap().write_all(bytes).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn age_and_zstd_open_what_is_sealed_to_a_nodes_key_and_to_a_key_of_age_keygen() {
    let folder = Folder::new("open");
    let node = PrivateKey::generate(&[2; 32]);
    folder.write("id_ed25519", node.to_openssh(5, "node").as_bytes());
    let Some(line) = shell(&folder.0, "age-keygen -o key.txt 2>/dev/null; age-keygen -y key.txt") else {
        return;
    };
    let other: AgeRecipient = String::from_utf8(line).unwrap().parse().unwrap();
    for recipients in
        [vec![AgeRecipient::Node(node.public()), other], vec![other, AgeRecipient::Node(node.public())]]
    {
        folder.write("object", &sealed(&recipients, bytes()));
        for identity in ["id_ed25519", "key.txt"] {
            let plain = shell(&folder.0, &format!("age -d -i {identity} object | zstd -d")).unwrap();
            assert!(plain == bytes(), "{identity}");
        }
        std::fs::remove_file(folder.0.join("object")).unwrap();
    }
    folder.write("empty", &sealed(&[other], Vec::new()));
    assert_eq!(shell(&folder.0, "age -d -i key.txt empty | zstd -d").unwrap(), b"");
}

#[test]
fn what_zstd_and_age_write_for_a_nodes_key_and_for_a_key_of_age_keygen_is_opened() {
    let folder = Folder::new("write");
    let node = PrivateKey::generate(&[3; 32]);
    folder.write("id_ed25519.pub", node.public().to_openssh("node").as_bytes());
    folder.write("plain", &bytes());
    let Some(made) = shell(&folder.0, "age-keygen -o key.txt 2>/dev/null; grep -o AGE-SECRET-KEY.* key.txt")
    else {
        return;
    };
    let other = AgeIdentity::x25519(String::from_utf8(made).unwrap().trim()).unwrap();
    for level in [1, 3, 19] {
        let both = "-R id_ed25519.pub -r $(age-keygen -y key.txt)";
        let object = shell(&folder.0, &format!("zstd -{level} < plain | age {both}")).unwrap();
        for identity in [&AgeIdentity::Node(&node), &other] {
            assert!(opened(&object, identity) == bytes(), "level {level}");
        }
    }
}

#[test]
fn ssh_keygen_reads_an_exported_key_and_its_public_half() {
    let folder = Folder::new("ssh");
    let node = PrivateKey::generate(&[4; 32]);
    folder.write("id_ed25519", node.to_openssh(9, "a b").as_bytes());
    let Some(line) = shell(&folder.0, "ssh-keygen -y -f id_ed25519") else { return };
    assert_eq!(String::from_utf8(line).unwrap().trim(), node.public().to_openssh("a b"));
    let made = shell(&folder.0, "ssh-keygen -q -t ed25519 -N '' -f new; cat new").unwrap();
    let public = shell(&folder.0, "cat new.pub").unwrap();
    let key = PrivateKey::from_openssh(&String::from_utf8(made).unwrap()).unwrap();
    assert_eq!(strait_keying::PublicKey::from_openssh(&String::from_utf8(public).unwrap()), Ok(key.public()));
}
