//! A key of `age`, with which pipes of stock programs encrypt.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A key that `age` encrypts to and decrypts with.
#[derive(Debug)]
pub(crate) struct AgeKey {
    pub(crate) file: PathBuf,
    pub(crate) recipient: String,
}

impl AgeKey {
    /// A new one, in a file in `folder`, for a pipe that needs these programs, too; or why there is none.
    pub(crate) fn make(folder: &Path, programs: &[&str]) -> Result<AgeKey, String> {
        for program in ["age", "age-keygen"].iter().chain(programs) {
            if !strait_testbed::outside::has(program) {
                return Err(format!("there is no {program}"));
            }
        }
        let file = folder.join("age.key");
        let made = Command::new("age-keygen").arg("-o").arg(&file).stderr(Stdio::null()).status();
        let public = Command::new("age-keygen").arg("-y").arg(&file).output();
        match (made, public) {
            (Ok(status), Ok(public)) if status.success() && public.status.success() => {
                let recipient = String::from_utf8_lossy(&public.stdout).trim().to_owned();
                Ok(AgeKey { file, recipient })
            }
            _ => Err("age-keygen makes no key".to_owned()),
        }
    }
}
