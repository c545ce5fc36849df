//! How letters go, and with the last letter of an object its contents.

use futures_util::StreamExt;
use futures_util::stream;
use strait_keying::PublicKey;
use strait_transfer::broker::message::{BrokerFault, FaultKind, LetterKind, ObjectName};

use crate::engine::{Client, Engine};
use crate::letters;
use crate::names::{self, LetterName};
use crate::status::refusal;
use crate::store::StoreFault;
use crate::usage::Side;

/// Pieces that are removed at once.
const AT_ONCE: usize = 8;

/// Removes an object from the client's inbox, or as its sender from all; how many bytes it had.
pub(crate) async fn remove(
    engine: &Engine,
    client: &Client,
    object: &ObjectName,
    kind: LetterKind,
) -> Result<u64, BrokerFault> {
    let own = [client.key];
    let access = engine.access();
    let inboxes: Vec<&PublicKey> =
        if object.sender == client.key { access.keys().collect() } else { own.iter().collect() };
    let mut bytes = None;
    for receiver in inboxes {
        // One, but for a sender that said two things of an object: the other is listed, and can be removed, as before. To look for it would
        // read the names of the whole inbox for each letter.
        let found = letters::find(engine, receiver, kind, object, true).await;
        if let Some(name) = found.map_err(|fault| refusal(&fault))? {
            letter(engine, receiver, &name).await.map_err(|fault| refusal(&fault))?;
            bytes = Some(name.manifest.saturating_add(name.contents));
        }
    }
    bytes.ok_or_else(|| FaultKind::NotFound.into())
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
    engine.usage.subtract(Side::Kept, receiver, name.manifest.saturating_add(name.contents));
    engine.usage.subtract(Side::Sent, &name.object.sender, name.manifest);
    engine.usage.count(-1, -i128::from(name.manifest));
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
    engine.usage.subtract(Side::Sent, &name.object.sender, name.contents);
    engine.usage.count(0, -i128::from(name.contents));
    pieces(engine, &name.object, name.contents).await;
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

/// Removes all pieces that are there of an object.
pub(crate) async fn all_pieces(engine: &Engine, object: &ObjectName) -> Result<(), StoreFault> {
    let folder = names::contents(object);
    let all = engine.store.gather(&folder, Vec::new, |all, about| all.push((about.location, about.size)));
    for (path, size) in all.await? {
        engine.store.remove(&path).await?;
        engine.usage.subtract(Side::Sent, &object.sender, size);
        engine.usage.count(0, -i128::from(size));
    }
    Ok(())
}

/// Whether a peer has a letter of an object.
pub(crate) async fn has_letter(engine: &Engine, object: &ObjectName) -> Result<bool, StoreFault> {
    let access = engine.access();
    for receiver in access.keys() {
        if letters::find(engine, receiver, LetterKind::Transfer, object, true).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
