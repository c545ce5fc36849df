//! The metrics of a directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use strait_node::metrics::{Labels, MetricFamily, MetricsSource, exposition};
use tokio::task::spawn_blocking;

use crate::counters::{BUCKETS, Counters, Giver, QuestionKind, get};
use crate::keeper::Keeper;
use crate::now;
use crate::store::RefusalReason;

/// What is served.
#[derive(Debug)]
pub(crate) struct DirectoryMetrics {
    pub(crate) keeper: Arc<Keeper>,
    /// Connections for metrics that were closed unanswered.
    pub(crate) refused: Arc<AtomicU64>,
}

/// What the store has: its certificates, and of the revocation list the number and the age in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    certificates: Option<u64>,
    list: Option<(u64, u64)>,
}

impl MetricsSource for DirectoryMetrics {
    async fn text(&self) -> Option<String> {
        let store = Arc::clone(&self.keeper.store);
        let count = spawn_blocking(move || (store.count(), store.list_age(now()))).await;
        let kept = match count {
            Ok((Ok(certificates), list)) => Kept { certificates: Some(certificates), list },
            Ok((Err(error), list)) => {
                tracing::error!("certificates are not counted: {error}");
                Kept { certificates: None, list }
            }
            Err(_) => Kept::default(),
        };
        let mut families = of_store(kept);
        families.extend(of_clients(&self.keeper.counters, get(&self.refused)));
        if self.keeper.has_etcd() {
            families.extend(of_etcd(&self.keeper.counters));
        }
        Some(exposition(families))
    }
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus' samples are doubles")]
const fn number(value: u64) -> f64 {
    value as f64
}

fn one(value: u64) -> Vec<(Labels, f64)> {
    vec![(Vec::new(), number(value))]
}

fn of_store(kept: Kept) -> Vec<MetricFamily> {
    vec![
        (
            "directory_server_info",
            "gauge",
            "Version of the directory; always 1.",
            vec![(vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0)],
        ),
        (
            "directory_server_certificates",
            "gauge",
            "Certificates that are kept.",
            kept.certificates.map(one).unwrap_or_default(),
        ),
        (
            "directory_server_list_number",
            "gauge",
            "Number of the newest revocation list.",
            kept.list.map(|(number, _)| one(number)).unwrap_or_default(),
        ),
        (
            "directory_server_list_age_seconds",
            "gauge",
            "Time since that list was signed.",
            kept.list.map(|(_, age)| one(age)).unwrap_or_default(),
        ),
    ]
}

fn of_clients(counters: &Counters, refused_metrics: u64) -> Vec<MetricFamily> {
    let kinds = || QuestionKind::ALL.into_iter();
    let questions = kinds().map(|kind| (labels(kind), number(counters.questions(kind))));
    let mut refused = Vec::new();
    for giver in Giver::ALL {
        refused.extend(RefusalReason::ALL.into_iter().map(|reason| {
            let labels = vec![("from", giver.name().to_owned()), ("reason", reason.name().to_owned())];
            (labels, number(counters.refused(giver, reason)))
        }));
    }
    vec![
        (
            "directory_server_connections",
            "gauge",
            "Connections that are open, those that watch included.",
            one(get(&counters.connections)),
        ),
        ("directory_server_watching", "gauge", "Clients that watch.", one(get(&counters.watching))),
        (
            "directory_server_accepted_connections_total",
            "counter",
            "Connections accepted.",
            one(get(&counters.accepted)),
        ),
        (
            "directory_server_refused_connections_total",
            "counter",
            "Connections closed at once because there were as many as may be.",
            one(get(&counters.refused_connections)),
        ),
        ("directory_server_questions_total", "counter", "Questions, by kind.", questions.collect()),
        (
            "directory_server_answer_seconds",
            "histogram",
            "Time from a question to its answer, without what its source has to wait.",
            kinds()
                .filter(|kind| *kind != QuestionKind::Watch)
                .flat_map(|kind| answers(counters, kind))
                .collect(),
        ),
        (
            "directory_server_refused_total",
            "counter",
            "Certificates, lists and daily keys that were not kept.",
            refused,
        ),
        (
            "directory_server_metrics_refused_connections_total",
            "counter",
            "Connections for metrics closed unanswered because too many were open.",
            one(refused_metrics),
        ),
    ]
}

fn labels(kind: QuestionKind) -> Labels {
    vec![("question", kind.name().to_owned())]
}

/// The samples of a histogram.
fn answers(counters: &Counters, kind: QuestionKind) -> Vec<(Labels, f64)> {
    let Some(answers) = counters.answers(kind) else { return Vec::new() };
    let (within, count, seconds) = answers.totals();
    let bucket = |end: String, value| ([labels(kind), vec![("le", end)]].concat(), number(value));
    let mut samples: Vec<_> =
        BUCKETS.iter().zip(within).map(|(end, within)| bucket(end.to_string(), within)).collect();
    samples.push(bucket("+Inf".to_owned(), count));
    samples.extend([(labels(kind), seconds), (labels(kind), number(count))]);
    samples
}

fn of_etcd(counters: &Counters) -> Vec<MetricFamily> {
    let etcd = &counters.etcd;
    let revision = u64::try_from(etcd.revision.load(Ordering::Relaxed)).unwrap_or(0);
    vec![
        (
            "directory_server_etcd_followed",
            "gauge",
            "1 while changes of etcd are followed, else 0.",
            one(get(&etcd.followed)),
        ),
        (
            "directory_server_etcd_revision",
            "gauge",
            "The newest revision of etcd that was taken.",
            one(revision),
        ),
        (
            "directory_server_etcd_failures_total",
            "counter",
            "Questions to etcd, and watches of it, that failed.",
            one(get(&etcd.failures)),
        ),
    ]
}
