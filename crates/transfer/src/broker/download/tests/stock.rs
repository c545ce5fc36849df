//! An object that the programs `zstd` and `age` made, with a manifest that is written here by hand.

use std::process::{Command, Stdio};

use strait_testdata::skip::{Need, skip};

use super::*;

/// Runs a command line of the shell in `folder`; nothing when a program is missing.
fn shell(folder: &Path, line: &str) -> Option<Vec<u8>> {
    for program in ["age", "zstd"] {
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

/// A manifest with one file, field by field as `docs/design/outbox.md` has it.
fn manifest(id: [u8; 16], from: &PrivateKey, to: &PublicKey, name: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut out = b"strait manifest 1\n".to_vec();
    out.extend(id);
    out.extend(from.public().as_bytes());
    out.extend(7_u64.to_be_bytes());
    out.extend(NOW.to_be_bytes());
    out.extend(i64::MAX.to_be_bytes());
    out.extend([0, 5]);
    out.extend(b"inbox");
    out.extend([0, 0, 0, 1, 1]);
    out.extend(to.as_bytes());
    out.extend([0, 0, 0, 1, 0]);
    out.push(u8::try_from(name.len()).unwrap());
    out.extend(name);
    out.extend(0o640_u16.to_be_bytes());
    out.extend(1_000_000_000_i64.to_be_bytes());
    out.push(1);
    out.extend((bytes.len() as u64).to_be_bytes());
    out.extend(blake3::hash(bytes).as_bytes());
    out.extend(from.sign(&out));
    out
}

#[test]
fn what_zstd_and_age_made_with_a_manifest_by_hand_is_fetched() {
    let (scratch, a, b, broker, _) = setting(1);
    let plain = b"a line of text that comes again\n".repeat(200_000);
    fs::write(scratch.path().join("plain"), &plain).unwrap();
    fs::write(scratch.path().join("b.pub"), b.key().to_openssh("b")).unwrap();
    let id = [0x42; 16];
    fs::write(scratch.path().join("manifest"), manifest(id, &a.node, &b.key(), b"report.txt", &plain))
        .unwrap();
    let Some(contents) = shell(scratch.path(), "zstd -3 < plain | age -R b.pub") else { return };
    let manifest = shell(scratch.path(), "zstd -3 < manifest | age -R b.pub").unwrap();
    let receivers = [b.key()].into();
    let object = FakeObject { made: NOW, expires: i64::MAX, receivers, manifest, contents };
    let name = ObjectName { sender: a.key(), id: TransferId::from_bytes(id) };
    broker.change(|state| state.objects.insert((LetterKind::Transfer, name), object));
    let (said, tally) = b.visit(&broker);
    assert_eq!(tally.unwrap().received, 1, "{said:?}");
    assert!(fs::read(b.inbox.join("report.txt")).unwrap() == plain);
    // Not in its outbox: its sender hears of it all the same.
    assert_eq!(a.visit(&broker).0.delivered.len(), 1);
}
