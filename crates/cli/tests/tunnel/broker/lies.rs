//! A broker that lies: its store is changed behind its back. The receiver says what is wrong, makes no name of it, and takes the rest.

use std::fs;
use std::path::{Path, PathBuf};

use super::stock::{Outside, has_tools};
use super::{Scene, allowed_with_broker, files};
use crate::files::noise;

/// Two objects for the receiver, which have a file each, and what is in the store of them.
struct TwoObjects {
    scene: Scene,
    /// The folders of the pieces, the first object's first.
    contents: [PathBuf; 2],
    letters: [PathBuf; 2],
}

impl TwoObjects {
    fn put() -> TwoObjects {
        let mut scene = Scene::new();
        scene.start_sender();
        let put = |name: &str, seed: u32| {
            let before = (folders(&scene), scene.letters());
            fs::write(scene.source().join(name), noise(6_000_000, seed)).unwrap();
            scene.good(scene.put(&[name]));
            let new = |now: Vec<PathBuf>, before: &[PathBuf]| {
                let mut new = now.into_iter().filter(|path| !before.contains(path));
                new.next().unwrap()
            };
            (new(folders(&scene), &before.0), new(scene.letters(), &before.1))
        };
        let (one, two) = (put("one", 1), put("two", 2));
        scene.stop_sender();
        scene.start_receiver();
        TwoObjects { scene, contents: [one.0, two.0], letters: [one.1, two.1] }
    }

    /// Fetches, which has to fail with these words; the second file has to be there, and nothing of the first.
    fn first_fails(&self, words: &str) {
        let said = self.scene.bad(self.scene.fetch());
        assert!(said.contains(words), "{said}");
        assert_eq!(names(&self.scene), ["two"], "{said}");
        assert!(
            fs::read(self.scene.source().join("two")).unwrap()
                == fs::read(self.scene.here().join("two")).unwrap()
        );
        // It stays, for a broker may have been repaired.
        assert_eq!(self.scene.listed().len(), 1);
    }
}

fn folders(scene: &Scene) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = files(&scene.objects().join("contents"))
        .iter()
        .map(|path| path.parent().unwrap().to_owned())
        .collect();
    found.dedup();
    found
}

/// The names where the receiver's user is, without what is unfinished.
fn names(scene: &Scene) -> Vec<String> {
    let all = files(&scene.here());
    let name = |path: &PathBuf| path.strip_prefix(scene.here()).unwrap().to_string_lossy().into_owned();
    all.iter().map(name).filter(|name| !name.starts_with(".strait")).collect()
}

/// Gives the files of one folder the contents of those of another of the same names.
fn copy_all(from: &Path, to: &Path) {
    for file in files(from) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

#[test]
fn another_objects_contents_are_not_taken() {
    if !allowed_with_broker() {
        return;
    }
    let objects = TwoObjects::put();
    copy_all(&objects.contents[1], &objects.contents[0]);
    objects.first_fails("are not those of the manifest");
}

#[test]
fn another_objects_manifest_is_not_taken() {
    if !allowed_with_broker() {
        return;
    }
    let objects = TwoObjects::put();
    let sizes = objects.letters.each_ref().map(|letter| fs::metadata(letter).unwrap().len());
    assert_eq!(sizes[0], sizes[1], "padded alike");
    fs::copy(&objects.letters[1], &objects.letters[0]).unwrap();
    objects.first_fails("another transfer");
}

#[test]
fn truncated_contents_are_not_taken() {
    if !allowed_with_broker() {
        return;
    }
    let objects = TwoObjects::put();
    let last = files(&objects.contents[0]).pop().unwrap();
    let length = fs::metadata(&last).unwrap().len();
    fs::File::options().write(true).open(&last).unwrap().set_len(length / 2).unwrap();
    objects.first_fails("cannot be read");
}

#[test]
fn contents_that_are_gone_are_missed() {
    if !allowed_with_broker() {
        return;
    }
    let objects = TwoObjects::put();
    fs::remove_dir_all(&objects.contents[0]).unwrap();
    objects.first_fails("does not have it");
}

#[test]
fn an_object_that_was_fetched_is_not_taken_again() {
    if !allowed_with_broker() {
        return;
    }
    let objects = TwoObjects::put();
    let kept = objects.scene.dir.path().join("kept");
    fs::create_dir(&kept).unwrap();
    let letter = &objects.letters[0];
    copy_all(&objects.contents[0], &kept);
    fs::copy(letter, objects.scene.dir.path().join("letter")).unwrap();
    objects.scene.good(objects.scene.fetch());
    assert_eq!(names(&objects.scene), ["one", "two"]);
    for name in ["one", "two"] {
        fs::remove_file(objects.scene.here().join(name)).unwrap();
    }
    // The broker shows the old one again.
    fs::create_dir_all(&objects.contents[0]).unwrap();
    copy_all(&kept, &objects.contents[0]);
    fs::create_dir_all(letter.parent().unwrap()).unwrap();
    fs::copy(objects.scene.dir.path().join("letter"), letter).unwrap();
    assert_eq!(objects.scene.listed().len(), 1);
    objects.scene.good(objects.scene.fetch());
    assert!(names(&objects.scene).is_empty(), "the receiver remembers it");
    assert!(objects.scene.listed().is_empty());
}

/// An object that is made outside, whose signed manifest `change` alters: what fetching it complains of.
fn altered(names_and_change: (&[&str], fn(&mut Vec<u8>))) -> (Scene, String) {
    let mut scene = Scene::new();
    let file = scene.source().join("file");
    fs::write(&file, b"made outside\n".repeat(100)).unwrap();
    let (names, change) = names_and_change;
    let outside = Outside { scene: &scene, id: "ffeeddccbbaa99887766554433221100", serial: 7 };
    let entries: Vec<(&str, &Path)> = names.iter().map(|name| (*name, file.as_path())).collect();
    let mut manifest = outside.manifest(&entries);
    change(&mut manifest);
    let contents = outside.seal(&fs::read(&file).unwrap().repeat(names.len()));
    outside.store(&outside.seal(&manifest), &contents);
    scene.start_receiver();
    let said = scene.bad(scene.fetch());
    (scene, said)
}

#[test]
fn a_manifest_with_a_wrong_signature_makes_no_name() {
    if !allowed_with_broker() || !has_tools() {
        return;
    }
    let flip = |manifest: &mut Vec<u8>| *manifest.last_mut().unwrap() ^= 1;
    let (scene, said) = altered((&["file"], flip));
    assert!(said.contains("signature is wrong"), "{said}");
    assert!(files(&scene.here()).is_empty() && files(&scene.inbox()).is_empty());
}

#[test]
fn names_that_escape_are_refused() {
    if !allowed_with_broker() || !has_tools() {
        return;
    }
    for name in ["../escaped", "a/../../escaped", "/escaped"] {
        let (scene, said) = altered((&[name], |_| {}));
        assert!(said.contains("path") || said.contains("name"), "{name}: {said}");
        assert!(files(&scene.here()).is_empty() && files(&scene.inbox()).is_empty(), "{name}");
        let everywhere = files(scene.dir.path());
        assert!(everywhere.iter().all(|path| !path.ends_with("escaped")), "{name}");
        assert!(!Path::new("/escaped").exists());
    }
}
