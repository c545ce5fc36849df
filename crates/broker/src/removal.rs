//! How letters go, and with the last letter of an object its contents.

use futures_util::StreamExt;
use futures_util::stream;
use strait_keying::PublicKey;
use strait_transfer::broker::message::{BrokerFault, FaultKind, LetterKind, ObjectName};

use crate::charge;
use crate::engine::{Client, Engine};
use crate::letters;
use crate::names::{self, LetterName};
use crate::status::refusal;
use crate::store::StoreFault;
use crate::usage::Sums;

/// Pieces that are removed at once.
const AT_ONCE: usize = 8;

/// Removes an object from the client's inbox, or as its sender from all; how many bytes it had.
pub(crate) async fn remove(
    engine: &Engine,
    client: &Client,
    object: &ObjectName,
    kind: LetterKind,
) -> Result<u64, BrokerFault> {
    let inboxes =
        if object.sender == client.key { all_inboxes(engine, &client.key) } else { vec![client.key] };
    let mut bytes = None;
    for receiver in &inboxes {
        // One, but for a sender that said two things of an object: the other is listed, and can be removed, as before. To look for it would
        // read the names of the whole inbox for each letter.
        let found = letters::find(engine, &client.key, receiver, kind, object).await;
        if let Some(name) = found.map_err(|fault| refusal(&fault))? {
            letter(engine, receiver, &name).await.map_err(|fault| refusal(&fault))?;
            bytes = Some(name.size());
        }
    }
    bytes.ok_or_else(|| FaultKind::NotFound.into())
}

/// The inboxes that may have letters of a sender: those that are known to have some come first, and those where another broker may have
/// put one since the last list.
fn all_inboxes(engine: &Engine, sender: &PublicKey) -> Vec<PublicKey> {
    let mut inboxes = engine.usage.receivers(sender);
    let access = engine.access();
    let others: Vec<_> = access.keys().filter(|key| inboxes.binary_search(key).is_err()).copied().collect();
    inboxes.extend(others);
    inboxes
}

/// Removes a letter; its contents too, if no other receiver has one of the same name.
pub(crate) async fn letter(
    engine: &Engine,
    receiver: &PublicKey,
    name: &LetterName,
) -> Result<(), StoreFault> {
    let path = names::letter(receiver, name);
    let head = match engine.store.read(&path, 0..name.head()).await {
        Err(StoreFault::Missing) => return Ok(()),
        head => head?,
    };
    engine.store.remove(&path).await?;
    engine.index.remove(receiver, name.kind, &name.object);
    let mut gone = Sums::default();
    gone.letter(receiver, name);
    engine.usage.subtract(&gone);
    if name.contents == 0 {
        return Ok(());
    }
    // Each removes its own before it looks, so that the last of them finds none.
    for other in head.chunks_exact(32).filter_map(|key| <[u8; 32]>::try_from(key).ok()) {
        let other = PublicKey::from_bytes(other);
        if other != *receiver && engine.store.about(&names::letter(&other, name)).await?.is_some() {
            return Ok(());
        }
    }
    pieces(engine, &name.object, name.contents).await;
    let mut gone = Sums::default();
    gone.contents(&name.object.sender, charge::contents(name.contents));
    engine.usage.subtract(&gone);
    Ok(())
}

/// Removes the pieces of contents of this length. What fails is collected later.
pub(crate) async fn pieces(engine: &Engine, object: &ObjectName, contents: u64) {
    let count = names::pieces(contents).unwrap_or(0);
    let removed = stream::iter(0..count)
        .map(|number| async move { engine.store.remove(&names::piece(object, number)).await })
        .buffer_unordered(AT_ONCE);
    removed.for_each(|_| async {}).await;
}

/// Forgets an upload that is no object yet.
pub(crate) async fn abandon(engine: &Engine, object: &ObjectName) -> Result<(), BrokerFault> {
    let claim = engine.active.claim(*object, LetterKind::Transfer).await;
    let _claim = claim.ok_or(FaultKind::TooMany)?;
    if has_letter(engine, object).await.map_err(|fault| refusal(&fault))? {
        return Err(FaultKind::Exists.into());
    }
    all_pieces(engine, object).await.map_err(|fault| refusal(&fault))
}

/// Removes all pieces that are there of an object that has no letter.
pub(crate) async fn all_pieces(engine: &Engine, object: &ObjectName) -> Result<(), StoreFault> {
    let folder = names::contents(object);
    let all = engine.store.gather(&folder, Vec::new, |all, about| all.push((about.location, about.size)));
    let all = all.await?;
    // What the spool has goes on behind them.
    if let Err(error) = engine.spool.remove(object, all.len() as u64).await {
        engine.spool_fault(&error);
    }
    for (path, size) in all {
        engine.store.remove(&path).await?;
        let Some((_, number)) = names::parse_piece(&path) else { continue };
        let mut gone = Sums::default();
        gone.growth(object, number, 0, size);
        engine.usage.subtract(&gone);
    }
    Ok(())
}

/// Whether a peer has a letter of an object.
pub(crate) async fn has_letter(engine: &Engine, object: &ObjectName) -> Result<bool, StoreFault> {
    for receiver in all_inboxes(engine, &object.sender) {
        let found = letters::find(engine, &object.sender, &receiver, LetterKind::Transfer, object);
        if found.await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
