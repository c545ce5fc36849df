//! Certificates that are asked for when they are needed: which are under way, and which are known not to be there.
//!
//! ```text
//! ask -> Begun: poll_question -> the directory -> answered      a certificate, none, or no answer
//!     -> UnderWay                                               the answer is for all that asked
//!     -> Unknown                                                none is known, for some time
//!     -> Busy                                                   too many; to be asked again with the next packet
//! ```
//!
//! What strangers can have looked up has a budget and a share of its own, so that it keeps nothing of this host's own from being looked
//! up. What is known not to be there is forgotten after its time, and when something newer is heard.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use strait_clock::{Deadline, Time};
use strait_scheduler::Budget;
use strait_wire::sessionless::Name;

use crate::sessionless::{Cache, CacheCounts};

/// Look-ups under way at the same time: as many as names of senders for which datagrams wait.
const UNDER_WAY: usize = 256;
/// How many of them may be on account of strangers.
const FOR_STRANGERS: usize = UNDER_WAY / 2;
/// Look-ups a second: a quarter of what a directory answers to one source.
const A_SECOND: u64 = 500;
/// The same on account of strangers.
const A_SECOND_FOR_STRANGERS: u64 = 200;
/// How long an answer is waited for: as long as packets wait.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long it is taken for granted that there is no certificate: as long as an unknown sender is refused.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);
/// How long a name is not asked for again after no directory answered.
const FAILED_FOR: Duration = Duration::from_secs(3);
/// Names that are known to have no certificate.
const UNKNOWN: usize = 4096;

/// On whose account something is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// This host's: it sends to an address, or the configuration names a peer.
    Own,
    /// Who sent a datagram, or began a handshake.
    Stranger,
}

/// What becomes of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It is one of the questions now.
    Begun,
    /// It is under way.
    UnderWay,
    /// There is no such certificate, as far as is known until then.
    Unknown(Time),
    /// Too many are under way, or were within this second.
    Busy,
}

/// How a look-up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookUpEnd {
    /// A good certificate was there.
    Found,
    /// There is none.
    NotFound,
    /// There is one, and it is not good.
    Refused,
    /// No directory answered.
    Failed,
}

/// How look-ups ended, and what they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookUpCounts {
    /// Look-ups under way.
    pub under_way: usize,
    /// How many found a good certificate.
    pub found: u64,
    /// How many found none.
    pub not_found: u64,
    /// How many found one that is not good.
    pub refused: u64,
    /// How many no directory answered.
    pub failed: u64,
    /// How many took too long.
    pub timed_out: u64,
    /// How many were not begun, since too many were.
    pub busy: u64,
    /// What all that were answered took together.
    pub took: Duration,
    /// What the longest took.
    pub longest: Duration,
    /// Names without a certificate: those that are known, and how often that spared a look-up.
    pub unknown: CacheCounts,
}

impl LookUpCounts {
    /// The names of the ends, as they are shown, with how often each was.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("found", self.found),
            ("not_found", self.not_found),
            ("refused", self.refused),
            ("failed", self.failed),
            ("timed_out", self.timed_out),
            ("busy", self.busy),
        ]
    }
}

/// See the head of this module.
#[derive(Debug)]
pub struct LookUps {
    under_way: BTreeMap<Name, (Time, Asker)>,
    questions: VecDeque<Name>,
    unknown: Cache<Name, Time>,
    own: Budget,
    strangers: Budget,
    counts: LookUpCounts,
}

impl Default for LookUps {
    fn default() -> LookUps {
        LookUps::new()
    }
}

impl LookUps {
    /// Nothing is under way.
    #[must_use]
    pub fn new() -> LookUps {
        LookUps {
            under_way: BTreeMap::new(),
            questions: VecDeque::new(),
            unknown: Cache::new(UNKNOWN),
            own: Budget::new(A_SECOND, A_SECOND),
            strangers: Budget::new(A_SECOND_FOR_STRANGERS, A_SECOND_FOR_STRANGERS),
            counts: LookUpCounts::default(),
        }
    }

    /// The certificate of `name` is wanted.
    pub fn ask(&mut self, name: Name, asker: Asker, now: Time) -> Asked {
        if self.under_way.contains_key(&name) {
            return Asked::UnderWay;
        }
        if self.unknown.peek(name).is_some_and(|until| *until <= now) {
            self.unknown.remove(name);
        }
        if let Some(until) = self.unknown.get(name) {
            return Asked::Unknown(*until);
        }
        let strange = self.under_way.values().filter(|(_, asker)| *asker == Asker::Stranger).count();
        let (room, budget) = match asker {
            Asker::Own => (self.under_way.len() < UNDER_WAY, &mut self.own),
            Asker::Stranger => {
                (self.under_way.len() < UNDER_WAY && strange < FOR_STRANGERS, &mut self.strangers)
            }
        };
        if !room || !budget.take(1, now) {
            self.counts.busy += 1;
            return Asked::Busy;
        }
        self.under_way.insert(name, (now, asker));
        self.questions.push_back(name);
        Asked::Begun
    }

    /// The next question for a directory.
    pub fn poll_question(&mut self) -> Option<Name> {
        self.questions.pop_front()
    }

    /// A look-up has ended; says whether it was under way.
    pub fn answered(&mut self, name: Name, end: LookUpEnd, now: Time) -> bool {
        let Some((begun, _)) = self.under_way.remove(&name) else { return false };
        let took = now.since(begun);
        self.counts.took += took;
        self.counts.longest = self.counts.longest.max(took);
        let (count, unknown) = match end {
            LookUpEnd::Found => (&mut self.counts.found, None),
            LookUpEnd::NotFound => (&mut self.counts.not_found, Some(UNKNOWN_FOR)),
            LookUpEnd::Refused => (&mut self.counts.refused, Some(UNKNOWN_FOR)),
            LookUpEnd::Failed => (&mut self.counts.failed, Some(FAILED_FOR)),
        };
        *count += 1;
        if let Some(span) = unknown {
            self.unknown.insert(name, now + span, false);
        }
        true
    }

    /// Until when `name` is known to have no certificate.
    #[must_use]
    pub fn unknown_until(&mut self, name: Name, now: Time) -> Option<Time> {
        self.unknown.peek(name).copied().filter(|until| *until > now)
    }

    /// A certificate with these names is known now.
    pub fn know(&mut self, names: impl IntoIterator<Item = Name>) {
        for name in names {
            self.unknown.remove(name);
        }
    }

    /// Something newer was heard, so that what was not there or not good may be now.
    pub fn forget_unknown(&mut self) {
        self.unknown.retain(|_, _| false);
    }

    /// Ends what has taken too long; says what that was.
    pub fn timeout(&mut self, now: Time) -> Vec<Name> {
        let over: Vec<Name> = self
            .under_way
            .extract_if(.., |_, (begun, _)| *begun + PATIENCE <= now)
            .map(|(name, _)| name)
            .collect();
        for name in &over {
            self.counts.timed_out += 1;
            self.unknown.insert(*name, now + FAILED_FOR, false);
        }
        over
    }

    /// When [`LookUps::timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let first = self.under_way.values().map(|(begun, _)| *begun).min()?;
        Some(Deadline { at: first + PATIENCE, why: "look-up of a certificate" })
    }

    /// How look-ups ended.
    #[must_use]
    pub fn counts(&self) -> LookUpCounts {
        LookUpCounts { under_way: self.under_way.len(), unknown: self.unknown.counts(), ..self.counts }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(number: u32) -> Name {
        Name::address(number.to_be_bytes().into())
    }

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn one_question_is_for_all_that_ask_and_an_answer_for_its_time() {
        let mut look_ups = LookUps::new();
        assert_eq!(look_ups.ask(name(1), Asker::Own, at(0)), Asked::Begun);
        assert_eq!(look_ups.ask(name(1), Asker::Stranger, at(1)), Asked::UnderWay);
        assert_eq!((look_ups.poll_question(), look_ups.poll_question()), (Some(name(1)), None));
        assert!(look_ups.answered(name(1), LookUpEnd::NotFound, at(20)));
        assert!(!look_ups.answered(name(1), LookUpEnd::Found, at(21)), "it was over");
        let until = at(20) + UNKNOWN_FOR;
        assert_eq!(look_ups.ask(name(1), Asker::Own, at(25)), Asked::Unknown(until));
        assert_eq!(look_ups.unknown_until(name(1), at(25)), Some(until));
        assert_eq!(look_ups.ask(name(1), Asker::Own, until), Asked::Begun);
        let counts = look_ups.counts();
        assert_eq!((counts.not_found, counts.unknown.hits, counts.under_way), (1, 1, 1));
        assert_eq!((counts.took, counts.longest), (Duration::from_millis(20), Duration::from_millis(20)));
    }

    #[test]
    fn what_is_not_there_is_forgotten_when_something_newer_is_heard() {
        let mut look_ups = LookUps::new();
        for (number, end) in [(1, LookUpEnd::NotFound), (2, LookUpEnd::Refused), (3, LookUpEnd::Failed)] {
            look_ups.ask(name(number), Asker::Own, at(0));
            look_ups.answered(name(number), end, at(0));
            assert!(matches!(look_ups.ask(name(number), Asker::Own, at(1)), Asked::Unknown(_)));
        }
        look_ups.know([name(1)]);
        assert_eq!(look_ups.ask(name(1), Asker::Own, at(1)), Asked::Begun);
        assert_eq!(look_ups.unknown_until(name(3), at(4000)), None, "a failure is forgotten soon");
        look_ups.forget_unknown();
        assert_eq!(look_ups.ask(name(2), Asker::Own, at(1)), Asked::Begun);
    }

    #[test]
    fn what_takes_too_long_ends() {
        let mut look_ups = LookUps::new();
        look_ups.ask(name(1), Asker::Own, at(0));
        look_ups.ask(name(2), Asker::Own, at(10));
        let due = look_ups.poll_timeout().unwrap().at;
        assert_eq!(look_ups.timeout(due), [name(1)]);
        assert!(matches!(look_ups.ask(name(1), Asker::Own, due), Asked::Unknown(_)));
        assert!(!look_ups.answered(name(1), LookUpEnd::Found, due));
        assert_eq!((look_ups.counts().timed_out, look_ups.counts().under_way), (1, 1));
    }

    #[test]
    fn a_flood_of_strangers_keeps_nothing_of_this_host_waiting() {
        let mut look_ups = LookUps::new();
        let begun = (0..10_000)
            .filter(|number| look_ups.ask(name(*number), Asker::Stranger, at(0)) == Asked::Begun)
            .count();
        assert_eq!(begun, FOR_STRANGERS);
        assert_eq!(look_ups.ask(name(20_000), Asker::Own, at(0)), Asked::Begun);
        // Answered at once, all the same only so many are asked for in a second.
        let mut begun = 0;
        for number in 0..10_000 {
            if look_ups.ask(name(30_000 + number), Asker::Stranger, at(0)) == Asked::Begun {
                begun += 1;
            }
            while let Some(name) = look_ups.poll_question() {
                look_ups.answered(name, LookUpEnd::NotFound, at(0));
            }
        }
        assert!(begun + FOR_STRANGERS as u64 <= A_SECOND_FOR_STRANGERS + 1, "{begun}");
        assert_eq!(look_ups.ask(name(20_001), Asker::Own, at(0)), Asked::Begun);
    }

    proptest! {
        #[test]
        fn each_look_up_ends_once_and_all_is_bounded(
            steps in proptest::collection::vec((0..5_u8, 0..400_u32, 0..2000_u64), 0..400),
        ) {
            let mut look_ups = LookUps::new();
            let (mut now, mut begun, mut ended) = (Time::ZERO, 0_u64, 0_u64);
            for (step, number, span) in steps {
                match step {
                    0 | 1 => {
                        let asker = if step == 0 { Asker::Own } else { Asker::Stranger };
                        let was = look_ups.under_way.contains_key(&name(number));
                        let asked = look_ups.ask(name(number), asker, now);
                        prop_assert_eq!(was, asked == Asked::UnderWay);
                        begun += u64::from(asked == Asked::Begun);
                    }
                    2 => ended += u64::from(look_ups.answered(name(number), LookUpEnd::NotFound, now)),
                    3 => {
                        now += Duration::from_millis(span);
                        ended += look_ups.timeout(now).len() as u64;
                        let late = look_ups.poll_timeout().is_some_and(|deadline| deadline.at <= now);
                        prop_assert!(!late, "nothing is left that is due");
                    }
                    _ => look_ups.forget_unknown(),
                }
                let counts = look_ups.counts();
                prop_assert_eq!(begun, ended + counts.under_way as u64);
                prop_assert!(counts.under_way <= UNDER_WAY && counts.unknown.entries <= UNKNOWN);
            }
        }
    }
}
