//! Every command of the guides, as an ordinary user of two hosts runs it, says what the page says.
#![allow(clippy::unwrap_used)]

mod files;
mod login;
mod machine;
mod page;
mod tunnel;
