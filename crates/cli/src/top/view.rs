//! What the person looks at: the view, the peer, the selected flow. It changes by keys and by answers, and is all that is drawn.

use std::time::Duration;

use strait_node::report::PeerReport;

use super::figures::{Flow, FlowKey, Flows, Poll, Polls};
use super::keys::Key;

/// What the middle of the screen shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// Flows with their compression.
    Flows,
    /// The decision on the selected flow.
    Why,
    /// Bytes saved since the daemon started.
    Savings,
    /// Keys and columns.
    Help,
}

/// What a key does to the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Draws again.
    Draw,
    /// Draws every cell again.
    Redraw,
    /// Ends in order.
    Quit,
    /// Ends as SIGINT has it.
    Interrupt,
}

/// All that is drawn.
#[derive(Clone, Debug)]
pub(super) struct View {
    polls: Polls,
    pub(super) page: Page,
    /// The name of the peer that is shown; another one once that is gone.
    peer: Option<String>,
    selected: Option<FlowKey>,
    flows: Flows,
    /// Why the daemon does not answer; none while it does.
    pub(super) trouble: Option<String>,
    pub(super) every: Duration,
    /// Whether there may be colours.
    pub(super) colours: bool,
}

impl View {
    pub(super) fn new(first: Poll, every: Duration, colours: bool) -> View {
        let mut view = View {
            polls: Polls::new(first),
            page: Page::Flows,
            peer: None,
            selected: None,
            flows: Flows::default(),
            trouble: None,
            every,
            colours,
        };
        view.find_flows();
        view
    }

    /// Takes an answer, or why there is none.
    pub(super) fn take(&mut self, answer: Result<Poll, String>) {
        match answer {
            Ok(poll) => {
                self.trouble = None;
                self.polls.take(poll);
                self.find_flows();
            }
            Err(why) => self.trouble = Some(why),
        }
    }

    /// Does what a key asks for.
    pub(super) fn press(&mut self, key: Key) -> Step {
        let toggled = |page| if self.page == page { Page::Flows } else { page };
        match key {
            Key::Quit => return Step::Quit,
            Key::Interrupt => return Step::Interrupt,
            Key::Redraw => return Step::Redraw,
            Key::Why => self.page = toggled(Page::Why),
            Key::Savings => self.page = toggled(Page::Savings),
            Key::Help => self.page = toggled(Page::Help),
            Key::Back => self.page = Page::Flows,
            Key::NextPeer => self.next_peer(),
            Key::Up => self.select(self.selected().saturating_sub(1)),
            Key::Down => self.select(self.selected() + 1),
        }
        Step::Draw
    }

    pub(super) fn polls(&self) -> &Polls {
        &self.polls
    }

    pub(super) fn flows(&self) -> &Flows {
        &self.flows
    }

    /// The place of the peer that is shown, and itself; none where there is no peer.
    pub(super) fn peer(&self) -> Option<(usize, &PeerReport)> {
        let peers = &self.polls.report().peers;
        let named = peers.iter().position(|it| Some(&it.name) == self.peer.as_ref());
        let place = named.unwrap_or(0);
        peers.get(place).map(|peer| (place, peer))
    }

    /// The place of the selected flow among the rows: the first one where that is gone.
    pub(super) fn selected(&self) -> usize {
        let is = |flow: &Flow| Some(flow.key()) == self.selected;
        self.flows.rows.iter().position(is).unwrap_or(0)
    }

    /// The selected flow.
    pub(super) fn flow(&self) -> Option<&Flow> {
        self.flows.rows.get(self.selected())
    }

    fn select(&mut self, place: usize) {
        let last = self.flows.rows.len().saturating_sub(1);
        self.selected = self.flows.rows.get(place.min(last)).map(Flow::key);
    }

    fn next_peer(&mut self) {
        let peers = &self.polls.report().peers;
        let next = self.peer().map_or(0, |(place, _)| place + 1) % peers.len().max(1);
        self.peer = peers.get(next).map(|peer| peer.name.clone());
        self.selected = None;
        self.find_flows();
    }

    fn find_flows(&mut self) {
        self.flows = self.peer().map_or_else(Flows::default, |(_, peer)| self.polls.flows(&peer.name));
        // The first one stays selected when another takes its place.
        if self.selected.is_none() {
            self.select(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{at, decision, report};
    use super::*;

    fn view() -> View {
        let mut told = report();
        let mut other = told.peers[0].clone();
        other.name = "site-c".to_owned();
        told.peers.push(other);
        told.decisions = Some(vec![decision("tcp a", 900), decision("tcp b", 90), decision("tcp c", 9)]);
        View::new(at(0, told), Duration::from_secs(1), false)
    }

    #[test]
    fn keys_change_the_page_and_back() {
        let mut view = view();
        for (key, page) in [
            (Key::Why, Page::Why),
            (Key::Why, Page::Flows),
            (Key::Savings, Page::Savings),
            (Key::Help, Page::Help),
            (Key::Back, Page::Flows),
        ] {
            assert_eq!(view.press(key), Step::Draw);
            assert_eq!(view.page, page);
        }
        assert_eq!(view.press(Key::Quit), Step::Quit);
        assert_eq!(view.press(Key::Interrupt), Step::Interrupt);
        assert_eq!(view.press(Key::Redraw), Step::Redraw);
    }

    #[test]
    fn the_selection_stays_with_its_flow_and_within_the_list() {
        let mut view = view();
        assert_eq!(view.selected(), 0);
        view.press(Key::Up);
        assert_eq!(view.selected(), 0);
        view.press(Key::Down);
        assert_eq!(view.flow().unwrap().decision.class, "tcp b");
        let mut next = view.polls().report().clone();
        next.decisions = Some(vec![decision("tcp b", 9_000), decision("tcp a", 900)]);
        view.take(Ok(at(1_000, next.clone())));
        assert_eq!((view.selected(), view.flow().unwrap().decision.class.as_str()), (0, "tcp b"));
        view.press(Key::Down);
        view.press(Key::Down);
        assert_eq!(view.flow().unwrap().decision.class, "tcp a");
        next.decisions = Some(Vec::new());
        view.take(Ok(at(2_000, next)));
        assert_eq!((view.selected(), view.flow()), (0, None));
        view.press(Key::Down);
        assert_eq!(view.flow(), None);
    }

    #[test]
    fn peers_take_turns_and_may_vanish() {
        let mut view = view();
        assert_eq!(view.peer().unwrap().1.name, "site-b");
        view.press(Key::NextPeer);
        assert_eq!((view.peer().unwrap().1.name.as_str(), view.flows().rows.len()), ("site-c", 0));
        let mut next = view.polls().report().clone();
        next.peers.truncate(1);
        view.take(Ok(at(1_000, next.clone())));
        assert_eq!((view.peer().unwrap().1.name.as_str(), view.flows().rows.len()), ("site-b", 3));
        next.peers.clear();
        view.take(Ok(at(2_000, next)));
        assert!(view.peer().is_none());
        view.press(Key::NextPeer);
        assert!(view.peer().is_none());
    }

    #[test]
    fn trouble_is_said_until_there_is_an_answer() {
        let mut view = view();
        view.take(Err("no tunnel is running".to_owned()));
        assert!(view.trouble.is_some());
        assert_eq!(view.flows().rows.len(), 3, "the last figures stay");
        view.take(Ok(at(1_000, report())));
        assert_eq!(view.trouble, None);
    }
}
