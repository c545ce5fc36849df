//! Which requests fail, and how.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What is done to a request instead of, or beside, answering it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The request is read, nothing is done, and this status is the answer: 500 as `InternalError`, 503 as `SlowDown`, 403 as
    /// `AccessDenied`, 507 as a disk that is full.
    Status(u16),
    /// No answer, for as long as the client waits; nothing is done.
    Silence,
    /// The connection ends after this many bytes of the request's body, as when a client or a network fails in the middle of an upload.
    CutRequest(u64),
    /// The request is carried out, and the connection ends after this many bytes of the answer's body.
    CutAnswer(u64),
    /// The request is carried out, and the connection ends without an answer.
    LostAnswer,
    /// The request is carried out, and answered this many milliseconds later.
    Slow(u64),
    /// 403 `RequestTimeTooSkewed`: the clocks of the store and the client are more than 15 minutes apart.
    Skewed,
}

/// To which requests a fault is done. What is not given selects every request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The method, such as `PUT`.
    #[serde(default)]
    pub method: Option<String>,
    /// What the path and the query contain, such as `/contents/`, or `prefix=inbox`.
    #[serde(default)]
    pub contains: Option<String>,
    /// How many of those requests pass before the first fault.
    #[serde(default)]
    pub skip: u64,
    /// How many of them then meet the fault.
    #[serde(default)]
    pub times: Option<u64>,
    /// What they meet.
    pub fault: Fault,
}

/// By how much the store's clock is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockShift {
    /// Added to every time that it says: `Date` and `Last-Modified`.
    pub seconds: i64,
    /// Whether requests that are then signed more than 15 minutes apart from it are refused, as Amazon's are.
    #[serde(default)]
    pub strict: bool,
}

/// The most by which a request's time may differ from the server's, in seconds: Amazon S3, "Authenticating Requests (AWS Signature
/// Version 4)".
const MOST_SKEW: u64 = 15 * 60;

impl Rule {
    /// Every request meets `fault`.
    #[must_use]
    pub const fn every(fault: Fault) -> Rule {
        Rule { method: None, contains: None, skip: 0, times: None, fault }
    }

    /// Only requests with this method.
    #[must_use]
    pub fn method(self, method: &str) -> Rule {
        Rule { method: Some(method.to_owned()), ..self }
    }

    /// Only requests whose path and query contain this.
    #[must_use]
    pub fn on(self, part: &str) -> Rule {
        Rule { contains: Some(part.to_owned()), ..self }
    }

    /// Only after so many of them have passed.
    #[must_use]
    pub fn after(self, skip: u64) -> Rule {
        Rule { skip, ..self }
    }

    /// Only so many of them.
    #[must_use]
    pub fn times(self, times: u64) -> Rule {
        Rule { times: Some(times), ..self }
    }

    fn selects(&self, method: &str, target: &str) -> bool {
        self.method.as_deref().is_none_or(|wanted| wanted == method)
            && self.contains.as_deref().is_none_or(|part| target.contains(part))
    }
}

/// The rules that are in force, the store's clock, and what was counted. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    rules: Vec<(Rule, u64)>,
    clock: ClockShift,
    requests: u64,
    met: u64,
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts these rules in force, in place of the earlier ones. The first that selects a request, and is not used up, decides.
    pub fn set(&self, rules: impl IntoIterator<Item = Rule>) {
        self.state().rules = rules.into_iter().map(|rule| (rule, 0)).collect();
    }

    /// Sets the store's clock wrong.
    pub fn shift_clock(&self, clock: ClockShift) {
        self.state().clock = clock;
    }

    /// How wrong the store's clock is, in seconds.
    pub(crate) fn clock_seconds(&self) -> i64 {
        self.state().clock.seconds
    }

    /// Requests that came so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.state().requests
    }

    /// Requests that met a fault so far, those refused for the clock among them.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.state().met
    }

    /// What happens to this request.
    pub(crate) fn of(&self, method: &str, target: &str) -> Option<Fault> {
        let state = &mut *self.state();
        state.requests += 1;
        let mut found = None;
        for (rule, seen) in &mut state.rules {
            if !rule.selects(method, target) {
                continue;
            }
            *seen += 1;
            let nth = seen.saturating_sub(rule.skip);
            if nth > 0 && rule.times.is_none_or(|times| nth <= times) {
                found = Some(rule.fault);
                break;
            }
        }
        if found.is_none() && state.clock.strict && state.clock.seconds.unsigned_abs() > MOST_SKEW {
            found = Some(Fault::Skewed);
        }
        state.met += u64::from(found.is_some());
        found
    }
}

impl Fault {
    /// How long the answer waits.
    pub(crate) const fn delay(self) -> Option<Duration> {
        match self {
            Fault::Slow(milliseconds) => Some(Duration::from_millis(milliseconds)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_counts_only_what_it_selects() {
        let faults = Faults::default();
        faults.set([Rule::every(Fault::Status(503)).method("PUT").on("/inbox/").after(1).times(2)]);
        assert_eq!(faults.of("GET", "/b/inbox/x"), None);
        assert_eq!(faults.of("PUT", "/b/contents/x"), None);
        let seen: Vec<_> = (0..4).map(|_| faults.of("PUT", "/b/inbox/x")).collect();
        assert_eq!(seen, [None, Some(Fault::Status(503)), Some(Fault::Status(503)), None]);
        assert_eq!((faults.requests(), faults.met()), (6, 2));
    }

    #[test]
    fn a_rule_that_is_used_up_leaves_requests_to_the_next() {
        let faults = Faults::default();
        faults.set([Rule::every(Fault::LostAnswer).times(1), Rule::every(Fault::Silence)]);
        assert_eq!(faults.of("PUT", "/b/x"), Some(Fault::LostAnswer));
        assert_eq!(faults.of("PUT", "/b/x"), Some(Fault::Silence));
    }

    #[test]
    fn only_a_strict_clock_that_is_far_off_refuses() {
        let faults = Faults::default();
        for (seconds, strict, refused) in
            [(-7200, false, false), (-7200, true, true), (7200, true, true), (900, true, false)]
        {
            faults.shift_clock(ClockShift { seconds, strict });
            let expected = refused.then_some(Fault::Skewed);
            assert_eq!(faults.of("GET", "/b/x"), expected, "{seconds} s");
        }
    }

    #[test]
    fn rules_are_read_from_json() {
        let rule: Rule = serde_json::from_str(r#"{"method": "PUT", "fault": {"status": 503}}"#).unwrap();
        assert_eq!(rule, Rule::every(Fault::Status(503)).method("PUT"));
        let rule: Rule = serde_json::from_str(r#"{"times": 3, "fault": "silence"}"#).unwrap();
        assert_eq!(rule, Rule::every(Fault::Silence).times(3));
        assert!(serde_json::from_str::<Rule>(r#"{"fault": "silence", "tiems": 3}"#).is_err());
    }
}
