//! `ssh`: an SSH server on standard input and output for the user's own `ssh`, whose channels become streams to a peer.
//!
//! | part | what it does |
//! |---|---|
//! | [`known`] | which peers there are, and the host key that is shown for each |
//! | [`settings`] | the lines for `ssh_config` |
//! | [`opener`] | streams to the peer, opened beside what goes on |
//! | [`session`] | a channel with a program at its other end |
//! | [`forward`] | a channel with a connection at its other end: a forwarded port, the agent |
//! | [`bridge`] | all of them, and the one place that waits |

mod bridge;
mod forward;
mod known;
mod opener;
mod session;
mod settings;

use std::io::{IsTerminal, stdin};

use strait_node::interrupt::EndSignal;
use strait_ssh::{Randomness, SshServer};

use crate::failure::{Code, CommandResult, Failure};
use crate::flags::SshFlags;
use crate::keys;
use crate::login::road::{LoginRoad, OwnNode};
use crate::output::line;
use bridge::Bridge;
use known::Known;

/// Serves `ssh`, or prints what its configuration needs.
pub(crate) fn run(flags: &SshFlags) -> CommandResult {
    let known = Known::find(flags.tunnel.as_deref())?;
    if flags.config {
        return settings::print(flags, &known);
    }
    if let Some(host) = &flags.known_hosts {
        line(known.line(host)?)?;
        return Ok(());
    }
    let Some(host) = flags.peers.first() else {
        return Err(Failure::new("no peer is named").remedy(COMMANDS).code(Code::Environment));
    };
    if stdin().is_terminal() {
        return Err(Failure::new("this command speaks SSH, and is started by `ssh`")
            .remedy(COMMANDS)
            .code(Code::Environment));
    }
    let peer = known.peer(host)?;
    let key = known.host_key(peer)?;
    let seed = keys::seed().map_err(Failure::doing("read random numbers from the system"))?;
    // `ssh` ends this process by a signal when it ends; a session's end is to be told first.
    strait_node::interrupt::ignore();
    let road =
        LoginRoad::find(flags.tunnel.as_deref(), &peer.name, "", OwnNode::Apart, (&flags.kerberos).into())?;
    let server = SshServer::new(key, Randomness::new(&seed)).map_err(Failure::new)?;
    // Not before: a node of this command's own is to be ended by it.
    let signal = EndSignal::take().map_err(Failure::doing("hear of signals"))?;
    Bridge::new(server, road, signal)?.run()
}

/// What to do instead.
const COMMANDS: &str = "put the output of `strait ssh --config` into ~/.ssh/config, then run `ssh PEER`, with the name of a peer";
