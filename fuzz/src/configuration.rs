//! A node's configuration file: refused with its mistakes, or consistent; never a panic.

use std::path::Path;

use strait_node::config::Config;
use strait_node::network::Plan;

/// Reads `data` as a configuration; what is accepted can be planned for, and reads the same again.
pub fn check(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let origin = Path::new("site.toml");
    match Config::parse(text, origin) {
        Ok(config) => {
            assert_eq!(Config::parse(text, origin).ok().as_ref(), Some(&config));
            let _ = Plan::of(&config);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
