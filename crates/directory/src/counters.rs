//! What a directory counts, for its metrics.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use strait_keying::directory::Question;

use crate::store::{RefusalReason, Taken};

/// Upper ends of the buckets of times to an answer, in seconds: around 2 ms, which a look-up may take, and 10 ms, which it may over etcd,
/// up to what etcd may take for a put.
pub(crate) const BUCKETS: [f64; 9] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 1.0, 10.0];

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionKind {
    Find,
    List,
    Watch,
    PutCertificate,
    PutList,
    FindDailyKeys,
    PutDailyKeys,
}

impl QuestionKind {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [QuestionKind; 7] = [
        QuestionKind::Find,
        QuestionKind::List,
        QuestionKind::Watch,
        QuestionKind::PutCertificate,
        QuestionKind::PutList,
        QuestionKind::FindDailyKeys,
        QuestionKind::PutDailyKeys,
    ];

    /// Its name in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            QuestionKind::Find => "find",
            QuestionKind::List => "list",
            QuestionKind::Watch => "watch",
            QuestionKind::PutCertificate => "put_certificate",
            QuestionKind::PutList => "put_list",
            QuestionKind::FindDailyKeys => "find_daily_keys",
            QuestionKind::PutDailyKeys => "put_daily_keys",
        }
    }

    pub(crate) const fn of(question: &Question) -> QuestionKind {
        match question {
            Question::Find(_) => QuestionKind::Find,
            Question::List(_) => QuestionKind::List,
            Question::Watch { .. } | Question::WatchAll => QuestionKind::Watch,
            Question::PutCertificate(_) => QuestionKind::PutCertificate,
            Question::PutList(_) => QuestionKind::PutList,
            Question::FindDailyKeys(_) => QuestionKind::FindDailyKeys,
            Question::PutDailyKeys(_) => QuestionKind::PutDailyKeys,
        }
    }
}

/// Who gave something that was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Giver {
    Client,
    Etcd,
}

impl Giver {
    pub(crate) const ALL: [Giver; 2] = [Giver::Client, Giver::Etcd];

    /// Its name in metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Giver::Client => "client",
            Giver::Etcd => "etcd",
        }
    }
}

/// How long answers took.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Answers {
    fn add(&self, took: Duration, count: u64) {
        let seconds = took.as_secs_f64();
        if let Some(bucket) =
            BUCKETS.iter().position(|end| seconds <= *end).and_then(|at| self.buckets.get(at))
        {
            add(bucket, count);
        }
        add(&self.count, count);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        add(&self.micros, micros.saturating_mul(count));
    }

    /// The number of answers within each of [`BUCKETS`], of all, and their seconds together.
    pub(crate) fn totals(&self) -> ([u64; BUCKETS.len()], u64, f64) {
        let (mut sum, mut within) = (0, [0; BUCKETS.len()]);
        for (within, bucket) in within.iter_mut().zip(&self.buckets) {
            sum += get(bucket);
            *within = sum;
        }
        (within, get(&self.count), Duration::from_micros(get(&self.micros)).as_secs_f64())
    }
}

/// All counters of a directory.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) accepted: AtomicU64,
    pub(crate) refused_connections: AtomicU64,
    pub(crate) watching: AtomicU64,
    pub(crate) etcd: EtcdCounters,
    questions: [AtomicU64; QuestionKind::ALL.len()],
    answers: [Answers; QuestionKind::ALL.len()],
    refused: [[AtomicU64; RefusalReason::ALL.len()]; Giver::ALL.len()],
}

/// How it stands with etcd.
#[derive(Debug, Default)]
pub(crate) struct EtcdCounters {
    /// 1 while its changes are followed.
    pub(crate) followed: AtomicU64,
    /// The newest revision that was taken.
    pub(crate) revision: AtomicI64,
    /// Questions and watches that failed.
    pub(crate) failures: AtomicU64,
}

impl Counters {
    /// Counts a question.
    pub(crate) fn asked(&self, kind: QuestionKind) {
        self.questions.get(kind as usize).into_iter().for_each(|counter| add(counter, 1));
    }

    /// Counts `count` answers of this kind, each after this time.
    pub(crate) fn answered(&self, kind: QuestionKind, took: Duration, count: u64) {
        self.answers.get(kind as usize).into_iter().for_each(|answers| answers.add(took, count));
    }

    /// Counts what came of things that were given, as far as they are not kept.
    pub(crate) fn taken(&self, giver: Giver, taken: &[Taken]) {
        for one in taken {
            if let Taken::Refused(refusal) = one {
                let counter = self.refused.get(giver as usize).and_then(|of| of.get(refusal.reason as usize));
                counter.into_iter().for_each(|counter| add(counter, 1));
            }
        }
    }

    pub(crate) fn questions(&self, kind: QuestionKind) -> u64 {
        self.questions.get(kind as usize).map_or(0, get)
    }

    pub(crate) fn answers(&self, kind: QuestionKind) -> Option<&Answers> {
        self.answers.get(kind as usize)
    }

    pub(crate) fn refused(&self, giver: Giver, reason: RefusalReason) -> u64 {
        self.refused.get(giver as usize).and_then(|of| of.get(reason as usize)).map_or(0, get)
    }
}

pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

pub(crate) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// One more of something, until this is dropped.
#[derive(Debug)]
pub(crate) struct Present<'c>(&'c AtomicU64);

impl Present<'_> {
    pub(crate) fn new(counter: &AtomicU64) -> Present<'_> {
        add(counter, 1);
        Present(counter)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_how_long_they_took() {
        let answers = Answers::default();
        answers.add(Duration::from_micros(1500), 1);
        answers.add(Duration::from_millis(5), 2);
        answers.add(Duration::from_secs(60), 1);
        let (within, count, seconds) = answers.totals();
        assert_eq!((within, count), ([0, 0, 1, 3, 3, 3, 3, 3, 3], 4));
        assert!((seconds - 60.0115).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn numbers_of_kinds_are_places_in_tables() {
        for (at, kind) in QuestionKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at);
        }
        for (at, reason) in RefusalReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
    }

    #[test]
    fn one_is_present_until_it_goes() {
        let counter = AtomicU64::new(0);
        let here = Present::new(&counter);
        assert_eq!(get(&counter), 1);
        drop(here);
        assert_eq!(get(&counter), 0);
    }
}
