//! `login`: a terminal or a command at a peer, over a stream that may be lost and replaced.

mod road;
mod serving;
mod wire;

pub(crate) use road::{LoginRoad, LoginStream, NoRoad, user_and_peer};
pub(crate) use serving::service;
