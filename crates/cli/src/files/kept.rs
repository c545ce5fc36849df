//! The copies of what was sent last, which belong to the user who sends.

use std::path::Path;

use strait_node::client;
use strait_node::config::Config;
use strait_node::folders::state_folder;
use strait_node::private_daemon::own_configuration;
use strait_node::runtime;
use strait_transfer::delta::KeepSent;
use strait_transfer::session::{DiskOrigin, Origin, SentCopies, ServedCopies};

use super::address::PeerPlace;
use super::stream::random;
use crate::output::note;
use crate::running::CarryingNode;

/// The folder in the state directory.
const FOLDER: &str = "sent";

/// Copies of what is sent to a place by a node. None if the configuration does not ask for them; what is in the way is said,
/// and the files go without them.
pub(super) fn copies(node: &CarryingNode, place: &PeerPlace) -> Option<SentCopies> {
    let (budget, peer) = asked(node, &place.peer)?;
    let opened =
        store(budget).and_then(|store| Ok((store, random().map_err(|failure| failure.to_string())?)));
    match opened {
        Ok((store, seed)) => {
            Some(SentCopies::new(store, &[b"send", peer.as_bytes(), &place.folder, &place.path], seed))
        }
        Err(why) => {
            warn(&why);
            None
        }
    }
}

/// Where a worker of this user's keeps copies of what it sends to the peer with this key.
pub(super) fn served(budget: Option<u64>, peer: &str) -> Option<ServedCopies> {
    let (budget, folder) = budget.zip(state_folder())?;
    let (folder, peer) = (folder.join(FOLDER), peer.as_bytes().to_vec());
    Some(ServedCopies { folder, budget, peer, random: random().ok()? })
}

/// Says why something that was sent is not kept.
pub(super) fn complain(origin: &mut DiskOrigin) {
    if let Some(trouble) = origin.copies().and_then(|copies| copies.trouble()) {
        warn(&trouble.to_string());
    }
}

fn warn(why: &str) {
    note(format_args!("strait: copies of what is sent are not kept: {why}"));
}

fn store(budget: u64) -> Result<KeepSent, String> {
    let state = state_folder().ok_or("there is no state directory: set STRAIT_STATE_DIR")?;
    runtime::make(&state).map_err(|error| error.to_string())?;
    let secret = random().map_err(|failure| failure.to_string())?;
    let folder = state.join(FOLDER);
    KeepSent::open_own(&folder, budget, secret).map_err(|error| format!("{}: {error}", folder.display()))
}

/// How much is to be kept, and the peer's key, which a name may lose to another. A user who may not read the configuration of the
/// daemon is asked for it in one of the user's own.
fn asked(node: &CarryingNode, peer: &str) -> Option<(u64, String)> {
    let budget = |file: &Path| Config::load_without_identity(file).ok()?.node.keep_sent;
    match node {
        CarryingNode::Own(file) => {
            let config = Config::load_without_identity(file).ok()?;
            let key = config.peers.iter().find(|it| it.name == peer)?.public_key()?.to_string();
            Some((config.node.keep_sent?, key))
        }
        CarryingNode::Running(interface) => {
            let report = client::show(interface).ok()?;
            let file = Path::new(&report.node.configuration);
            let budget = match Config::load_without_identity(file) {
                Ok(config) => config.node.keep_sent,
                Err(_) => own_configuration().as_deref().and_then(budget),
            };
            let key = report.peers.into_iter().find(|it| it.name == peer)?.public_key?;
            Some((budget?, key))
        }
    }
}
