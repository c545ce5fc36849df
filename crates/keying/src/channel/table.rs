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
    /// Channels that are to carry streams.
    for_streams: BTreeSet<ChannelId>,
    /// What the connection ids of each handle begin with, those of lent connections included.
    marks: BTreeMap<usize, u32>,
    /// Connections that others drive.
    lent: BTreeSet<usize>,
}

impl ChannelTable {
    pub(super) fn add(&mut self, channel: Channel, mark: u32) -> ChannelId {
        self.marks.insert(channel.handle.0, mark);
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
            self.marks.remove(&channel.handle.0);
            self.stirred.remove(&id);
            self.for_streams.remove(&id);
        }
    }

    /// Forgets all of them; no number comes again.
    pub(super) fn clear(&mut self) {
        *self = ChannelTable { last: self.last, ..ChannelTable::default() };
    }

    /// The channel is to carry streams.
    pub(super) fn keep_for_streams(&mut self, id: ChannelId) {
        self.for_streams.insert(id);
    }

    pub(super) fn is_for_streams(&self, id: ChannelId) -> bool {
        self.for_streams.contains(&id)
    }

    /// Takes a channel out whose connection others drive from now on.
    pub(super) fn lend(&mut self, id: ChannelId) -> Option<Channel> {
        let channel = self.channels.remove(&id)?;
        self.by_handle.remove(&channel.handle.0);
        self.stirred.remove(&id);
        self.for_streams.remove(&id);
        self.lent.insert(channel.handle.0);
        Some(channel)
    }

    pub(super) fn is_lent(&self, handle: usize) -> bool {
        self.lent.contains(&handle)
    }

    /// A lent connection is over.
    pub(super) fn forget_lent(&mut self, handle: usize) {
        self.lent.remove(&handle);
        self.marks.remove(&handle);
    }

    /// What the ids of lent connections begin with, in ascending order.
    pub(super) fn lent_marks(&self) -> Vec<u32> {
        let mut marks: Vec<u32> =
            self.lent.iter().filter_map(|handle| self.marks.get(handle)).copied().collect();
        marks.sort_unstable();
        marks
    }

    pub(super) fn mark(&self, handle: usize) -> Option<u32> {
        self.marks.get(&handle).copied()
    }

    pub(super) fn has_mark(&self, mark: u32) -> bool {
        self.marks.values().any(|taken| *taken == mark)
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
