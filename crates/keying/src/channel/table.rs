//! The channels there are, and which of them may have something to send.

use std::collections::{BTreeMap, BTreeSet};

use super::{Channel, ChannelId};

/// The channels of a node, found by number or by QUIC's handle.
#[derive(Default)]
pub(super) struct ChannelTable {
    channels: BTreeMap<ChannelId, Channel>,
    by_handle: BTreeMap<usize, ChannelId>,
    last: u64,
    /// Channels that may have something to send.
    stirred: BTreeSet<ChannelId>,
}

impl ChannelTable {
    pub(super) fn add(&mut self, channel: Channel) -> ChannelId {
        self.last += 1;
        let id = ChannelId(self.last);
        self.by_handle.insert(channel.handle.0, id);
        self.channels.insert(id, channel);
        self.stirred.insert(id);
        id
    }

    pub(super) fn remove(&mut self, id: ChannelId) {
        if let Some(channel) = self.channels.remove(&id) {
            self.by_handle.remove(&channel.handle.0);
            self.stirred.remove(&id);
        }
    }

    pub(super) fn get(&self, id: ChannelId) -> Option<&Channel> {
        self.channels.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.channels.get_mut(&id)
    }

    pub(super) fn by_handle(&mut self, handle: usize) -> Option<(ChannelId, &mut Channel)> {
        let id = *self.by_handle.get(&handle)?;
        self.channels.get_mut(&id).map(|channel| (id, channel))
    }

    /// From the oldest to the newest.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ChannelId, &Channel)> {
        self.channels.iter().map(|(id, channel)| (*id, channel))
    }

    pub(super) fn len(&self) -> usize {
        self.channels.len()
    }

    /// A channel may have something to send.
    pub(super) fn stir(&mut self, id: ChannelId) {
        self.stirred.insert(id);
    }

    /// A channel has sent what it had.
    pub(super) fn calm(&mut self, id: ChannelId) {
        self.stirred.remove(&id);
    }

    /// A channel that may have something to send, once.
    pub(super) fn next_stirred(&mut self) -> Option<ChannelId> {
        self.stirred.pop_first()
    }
}
