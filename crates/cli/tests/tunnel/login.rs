//! `strait login` between the daemons of two hosts, the second of which has accounts, PAM and records of its own.

mod commands;
pub(crate) mod place;
mod resume;
mod terminals;
