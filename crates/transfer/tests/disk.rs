//! Folders and sources with real processes: killed, without rights, on a full disk.
#![allow(missing_docs, clippy::unwrap_used)]

mod disk {
    mod full;
    mod killed;
    mod shared;
    mod users;
}
