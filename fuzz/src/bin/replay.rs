//! Feeds files to a target, without a fuzzer: what `fuzz/cover` measures, and how a finding is seen again.
//!
//! `replay TARGET FILE-OR-FOLDER...`; a folder stands for the files in it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_default();
    let Some((_, check)) = strait_fuzz::TARGETS.iter().find(|(name, _)| *name == wanted) else {
        eprintln!("replay: no target '{wanted}'; use: replay TARGET FILE-OR-FOLDER...");
        return ExitCode::from(2);
    };
    for argument in arguments {
        match inputs(Path::new(&argument)) {
            Ok(inputs) => inputs.iter().for_each(|input| check(input)),
            Err(error) => {
                eprintln!("replay: {argument}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

fn inputs(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    if !path.is_dir() {
        return Ok(vec![fs::read(path)?]);
    }
    let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
    let files: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    files.iter().filter(|file| file.is_file()).map(fs::read).collect()
}
