//! What `strait init` writes.

use std::path::Path;

/// A commented configuration whose key is in `private_key_file`; it can be read as it is.
#[must_use]
pub fn template(private_key_file: &Path) -> String {
    // A TOML basic string; JSON escapes its text the same way.
    let key = serde_json::Value::from(private_key_file.to_string_lossy()).to_string();
    include_str!("template.toml").replace("\"strait.key\"", &key)
}
