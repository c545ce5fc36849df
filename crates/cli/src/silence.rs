//! The silence of a peer that a command waits for: for how long nothing has come, said while it lasts.

use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strait_model::BitRate;

use crate::output::{note, tell};
use crate::status_line::{ONCE, StatusLine};
use crate::units::span;

/// The silence that a transfer bears: a path that was lost is often found again by then.
const TRANSFER: Duration = Duration::from_secs(10);
/// The bits that the node takes of a stream at once: on a slow link it takes nothing more until most of them have left.
const CHUNK: f64 = 8.0 * 65_536.0;
/// The time between two looks: as often as a person reads a number of seconds.
const LOOK: Duration = Duration::from_secs(1);

/// Returns the silence that a transfer over a link of this rate bears: at least two chunks' worth.
pub(crate) fn patience(link: Option<BitRate>) -> Duration {
    TRANSFER.max(two_chunks(link))
}

fn two_chunks(link: Option<BitRate>) -> Duration {
    let chunks = link.map(|rate| Duration::try_from_secs_f64(2.0 * CHUNK / rate.as_bits()));
    chunks.and_then(Result::ok).unwrap_or_default()
}

/// Says that a peer is silent.
pub(crate) fn words(peer: &str, silent: Duration) -> String {
    format!("nothing from {peer} for {}", span(silent))
}

/// The change in a silence that is to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SilenceChange {
    /// It has lasted so long, longer than is borne.
    Long(Duration),
    /// It lasted so long and is over.
    Over(Duration),
}

/// A silence: whether it is said, and of what length.
#[derive(Debug)]
struct Silence {
    /// The silence that is borne at least, and at most: twice the longest that was there so far.
    borne: [Duration; 2],
    longest: Duration,
    last: Duration,
    said: Option<Duration>,
}

impl Silence {
    const fn new(least: Duration, most: Duration) -> Silence {
        Silence { borne: [least, most], longest: Duration::ZERO, last: Duration::ZERO, said: None }
    }

    /// Takes how long nothing has come until now.
    fn look(&mut self, silent: Duration) -> Option<SilenceChange> {
        let before = core::mem::replace(&mut self.last, silent);
        if silent < before {
            self.longest = self.longest.max(before);
        }
        let [least, most] = self.borne;
        match self.said {
            Some(longest) if silent < longest => {
                self.said = None;
                Some(SilenceChange::Over(longest))
            }
            None if silent < (2 * self.longest).max(least).min(most) => None,
            said => {
                self.said = Some(silent);
                said.is_none().then_some(SilenceChange::Long(silent))
            }
        }
    }
}

/// A follower of work that a peer takes part in. It says once, on standard error or as an event, that nothing comes, and once that
/// something came again; on a terminal, its line says so as long as it lasts.
#[derive(Debug)]
pub(crate) struct SilenceWatch<'a> {
    peer: &'a str,
    json: bool,
    /// The silence that is borne on a terminal, whose line goes away again, and elsewhere.
    line: Duration,
    patience: Duration,
}

impl<'a> SilenceWatch<'a> {
    /// A follower of a transfer over a link of this rate, with events as `json` if there are any.
    pub(crate) fn of_transfer(peer: &'a str, json: bool, link: Option<BitRate>) -> SilenceWatch<'a> {
        SilenceWatch { peer, json, line: ONCE.max(two_chunks(link)), patience: patience(link) }
    }

    /// Does `work`. Meanwhile `silent` returns for how long nothing came, and `show` is called each second, with the words for a silence
    /// that lasts too long.
    pub(crate) fn during<T>(
        &self,
        silent: impl Fn() -> Duration + Send,
        show: impl Fn(Option<&str>) + Send,
        work: impl FnOnce() -> T,
    ) -> T {
        let (done, ended) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || self.follow(&silent, &show, &ended));
            let result = work();
            drop(done);
            result
        })
    }

    fn follow(&self, silent: &dyn Fn() -> Duration, show: &dyn Fn(Option<&str>), ended: &Receiver<()>) {
        let begun = Instant::now();
        let has_line = !self.json && StatusLine::new().is_shown();
        let mut silence = Silence::new(if has_line { self.line } else { self.patience }, self.patience);
        while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            // Before it began, nothing was waited for.
            let change = silence.look(silent().min(begun.elapsed()));
            match change {
                Some(change) if self.json => tell(self.event(change)),
                Some(change) if !has_line => note(self.line(change)),
                _ => {}
            }
            show(silence.said.map(|silent| words(self.peer, silent)).as_deref());
        }
    }

    fn line(&self, change: SilenceChange) -> String {
        match change {
            SilenceChange::Long(silent) => words(self.peer, silent),
            SilenceChange::Over(silent) => format!("{} is heard again, after {}", self.peer, span(silent)),
        }
    }

    fn event(&self, change: SilenceChange) -> Value {
        let (event, silent) = match change {
            SilenceChange::Long(silent) => ("silent", silent),
            SilenceChange::Over(silent) => ("heard", silent),
        };
        json!({"event": event, "peer": self.peer, "silent_seconds": silent.as_secs_f64()})
    }
}

/// The line on the terminal of a command that waits for answers and prints what comes.
#[derive(Debug)]
pub(crate) struct AnswerLine {
    terminal: StatusLine,
    is_drawn: Mutex<bool>,
}

impl AnswerLine {
    pub(crate) fn new() -> AnswerLine {
        AnswerLine { terminal: StatusLine::new(), is_drawn: Mutex::new(false) }
    }

    /// Does `work`, which waits for answers of `peer`, and says meanwhile if nothing comes; `silent` returns for how long nothing did.
    pub(crate) fn during<T>(
        &self,
        peer: &str,
        silent: impl Fn() -> Duration + Send,
        work: impl FnOnce() -> T,
    ) -> T {
        let watch = SilenceWatch { peer, json: false, line: ONCE, patience: ONCE };
        let result = watch.during(silent, |words| self.show(words), work);
        self.show(None);
        result
    }

    /// Shows these words; without any, the line goes away.
    pub(crate) fn show(&self, words: Option<&str>) {
        let Ok(mut is_drawn) = self.is_drawn.lock() else { return };
        if *is_drawn || words.is_some() {
            self.terminal.draw(words.unwrap_or_default());
        }
        *is_drawn = words.is_some();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_silence_is_said_when_it_is_long_and_when_it_is_over() {
        let mut silence = Silence::new(seconds(10), seconds(10));
        let heard = [0, 5, 9, 0, 9, 10, 11, 52, 0, 1, 9, 30, 3];
        let said: Vec<_> = heard.iter().filter_map(|silent| silence.look(seconds(*silent))).collect();
        let expected = [
            SilenceChange::Long(seconds(10)),
            SilenceChange::Over(seconds(52)),
            SilenceChange::Long(seconds(30)),
            SilenceChange::Over(seconds(30)),
        ];
        assert_eq!(said, expected);
        assert_eq!(silence.said, None);
    }

    #[test]
    fn a_terminal_bears_twice_what_was_usual_so_far() {
        let mut silence = Silence::new(seconds(3), seconds(10));
        let mut said = |heard: &[u64]| {
            heard
                .iter()
                .filter(|silent| silence.look(seconds(**silent)).is_some())
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!(said(&[0, 1, 2, 3, 4, 0]), [3, 0]);
        assert_eq!(said(&[1, 4, 7, 8, 9, 0]), [8, 0]);
        assert_eq!(said(&[5, 9, 10, 11, 0, 9]), [10, 0]);
    }

    #[test]
    fn a_slow_link_is_borne_longer() {
        let of = |bits| patience(BitRate::bits(bits));
        assert_eq!(patience(None), TRANSFER);
        assert_eq!(of(1e6), TRANSFER);
        assert!((109..110).contains(&of(9_600.0).as_secs()), "{:?}", of(9_600.0));
    }

    #[test]
    fn who_is_silent_and_how_long_is_said_in_words_and_events() {
        let watch = SilenceWatch::of_transfer("office", true, None);
        assert_eq!(watch.line(SilenceChange::Long(seconds(12))), "nothing from office for 12 s");
        assert_eq!(watch.line(SilenceChange::Over(seconds(75))), "office is heard again, after 1 min 15 s");
        let expected = json!({"event": "silent", "peer": "office", "silent_seconds": 12.0});
        assert_eq!(watch.event(SilenceChange::Long(seconds(12))), expected);
    }
}
