//! `strait login` between the daemons of two hosts, the second of which has accounts, PAM and records of its own.

pub(crate) mod banned;
pub(crate) mod clients;
mod commands;
mod ending;
mod keys;
pub(crate) mod place;
mod refusals;
mod resume;
mod terminals;
mod tmux;
