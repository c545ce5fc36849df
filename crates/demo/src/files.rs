//! What the demonstration moves.

use std::path::{Path, PathBuf};

use strait_terminal::output::line;
use strait_terminal::units;
use strait_terminal::{CommandResult, Failure};
use strait_testbed::sample::{self, SampleFile};

/// Everything is held in memory, to be compared where it arrives.
const TOTAL_MAX: u64 = 1 << 30;

/// The named files, or the generated sample when none is named.
pub(crate) fn load(paths: &[PathBuf]) -> Result<Vec<SampleFile>, Failure> {
    if paths.is_empty() {
        return Ok(sample::generate(sample::DEFAULT_SEED));
    }
    let mut total = 0;
    paths
        .iter()
        .map(|path| {
            let metadata =
                std::fs::metadata(path).map_err(Failure::doing(format!("read {}", path.display())))?;
            if !metadata.is_file() {
                return Err(Failure::new(format!("{} is not a file", path.display()))
                    .remedy("name the files themselves, for example with a pattern: --files folder/*"));
            }
            total += metadata.len();
            if total > TOTAL_MAX {
                return Err(Failure::new(format!(
                    "the files are more than {} together",
                    units::bytes(TOTAL_MAX)
                ))
                .remedy("name fewer files"));
            }
            let bytes = std::fs::read(path).map_err(Failure::doing(format!("read {}", path.display())))?;
            Ok(SampleFile { name: name(path), bytes: bytes.into() })
        })
        .collect()
}

/// Writes the generated sample into a folder; existing files stay as they are.
pub(crate) fn save_sample(folder: &Path) -> CommandResult {
    std::fs::create_dir_all(folder).map_err(Failure::doing(format!("make {}", folder.display())))?;
    for file in sample::generate(sample::DEFAULT_SEED) {
        let path = folder.join(&file.name);
        std::fs::File::create_new(&path)
            .and_then(|mut out| std::io::Write::write_all(&mut out, &file.bytes))
            .map_err(Failure::doing(format!("write {}", path.display())))?;
        line(path.display())?;
    }
    Ok(())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_testbed::Workdir;

    #[test]
    fn named_files_or_the_sample() {
        let dir = Workdir::create().unwrap();
        save_sample(&dir.path().join("sample")).unwrap();
        let sample = load(&[]).unwrap();
        let paths: Vec<PathBuf> =
            sample.iter().map(|file| dir.path().join("sample").join(&file.name)).collect();
        assert_eq!(load(&paths).unwrap(), sample);
        assert!(save_sample(&dir.path().join("sample")).unwrap_err().to_string().contains("exists"));
    }

    #[test]
    fn what_cannot_be_moved_is_refused() {
        let dir = Workdir::create().unwrap();
        let failure = load(&[dir.path().to_owned()]).unwrap_err().to_string();
        assert!(failure.contains("is not a file"), "{failure}");
        let failure = load(&[dir.path().join("missing")]).unwrap_err().to_string();
        assert!(failure.contains("No such file"), "{failure}");
    }
}
