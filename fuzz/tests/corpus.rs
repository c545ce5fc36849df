//! Replays every committed seed, so that no fuzzer is needed to see one fail.

use std::fs;
use std::path::PathBuf;

#[test]
fn every_seed_passes() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, check) in strait_fuzz::TARGETS {
        let folder = corpus.join(name);
        let mut seeds: Vec<PathBuf> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("no seeds for {name} in {}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .collect();
        seeds.sort();
        assert!(!seeds.is_empty(), "no seeds in {}", folder.display());
        for seed in seeds {
            println!("{}", seed.display());
            check(&fs::read(&seed).unwrap());
        }
    }
}

#[test]
fn every_target_is_listed_and_wrapped() {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut wrapped: Vec<String> = fs::read_dir(manifest.join("fuzz_targets"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    wrapped.sort();
    let mut listed: Vec<&str> = strait_fuzz::TARGETS.iter().map(|(name, _)| *name).collect();
    listed.sort_unstable();
    assert_eq!(wrapped, listed);
    let cargo = fs::read_to_string(manifest.join("Cargo.toml")).unwrap();
    for name in listed {
        assert!(cargo.contains(&format!("name = \"{name}\"")), "{name} is not in Cargo.toml");
    }
}
