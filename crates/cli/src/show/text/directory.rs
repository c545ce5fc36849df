//! The directory that a node follows.

use std::time::Duration;

use strait_node::report::{CacheReport, DirectoryReport};

use super::sessionless::miss_time;
use crate::units::{self, counted};

/// What is shown of it, a line each.
pub(super) fn lines(told: &DirectoryReport) -> Vec<(&'static str, String)> {
    let list = match (told.list, told.list_age_seconds) {
        (Some(number), Some(age)) => {
            let span = |seconds| units::span(Duration::from_secs(seconds));
            let old = match told.clock_behind_seconds {
                Some(by) => format!(": the clock is {} behind it, no new peers are taken", span(by)),
                None if told.is_fresh => String::new(),
                None => ": too old, no new peers are taken".to_owned(),
            };
            format!("number {number}, {} old{old}", span(age))
        }
        _ => "none: no peers are taken".to_owned(),
    };
    let not_taken = told.not_taken.iter().filter(|one| one.count > 0);
    let not_taken: Vec<String> = not_taken.map(|one| format!("{} {}", one.count, one.reason)).collect();
    let outside = (told.outside_limits > 0).then(|| counted(told.outside_limits, "certificate"));
    vec![
        ("authority", told.authority.clone()),
        ("followed at", told.server.clone().unwrap_or_else(|| "no server answers".to_owned())),
        ("revocations", list),
        ("peers", counted(u64::try_from(told.certificates).unwrap_or(u64::MAX), "good certificate")),
        ("not taken", not_taken.join(", ")),
        ("look-ups", look_ups(told).unwrap_or_default()),
        ("caches", caches(told)),
        ("daily keys", daily_keys(told).unwrap_or_default()),
        ("outside limits", outside.unwrap_or_default()),
        ("last failure", told.last_failure.clone().unwrap_or_default()),
    ]
}

/// How it stands with daily keys.
fn daily_keys(told: &DirectoryReport) -> Option<String> {
    let daily = told.daily_keys.as_ref()?;
    let until = daily.own_until.as_ref().map(|day| format!(" until {day}")).unwrap_or_default();
    let published = match daily.published {
        0 => "published nowhere".to_owned(),
        servers => format!("published at {}", counted(servers as u64, "server")),
    };
    let peers = counted(daily.peers as u64, "peer");
    let verb = if daily.policy == "require" { "required" } else { "preferred" };
    Some(format!("{verb}; {published}{until}; {peers} with one of today"))
}

/// How look-ups of certificates ended, and how long they took.
fn look_ups(told: &DirectoryReport) -> Option<String> {
    let look_ups = told.look_ups.as_ref()?;
    let ended = look_ups.ends.iter().filter(|one| one.count > 0);
    let ended = ended.map(|one| format!("{} {}", one.count, one.end)).collect::<Vec<_>>().join(", ");
    let waited = ["found", "not_found", "refused", "failed"];
    let answered: u64 =
        look_ups.ends.iter().filter(|one| waited.contains(&one.end.as_str())).map(|one| one.count).sum();
    if answered == 0 {
        return Some(if ended.is_empty() { "none yet".to_owned() } else { ended });
    }
    #[expect(clippy::cast_precision_loss, reason = "a mean for people")]
    let mean = look_ups.seconds / answered as f64;
    let span = |seconds: f64| units::span(Duration::from_secs_f64(seconds.max(0.0)));
    Some(format!("{ended}; {} each, {} at most", span(mean), span(look_ups.longest_seconds)))
}

/// What is kept, and how often that was of use.
fn caches(told: &DirectoryReport) -> String {
    let cache = |one: &CacheReport| {
        let CacheReport { cache, entries, hits, misses, evicted, .. } = one;
        let took = miss_time(one).map(|took| format!(" of {took}")).unwrap_or_default();
        format!("{cache} {entries} ({hits} hits, {misses} misses{took}, {evicted} evicted)")
    };
    told.caches.iter().map(cache).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_node::report::{DailyKeysReport, LookUpEndReport, LookUpReport, NotTakenReport};

    #[test]
    fn what_is_wrong_is_said() {
        let nothing = lines(&DirectoryReport::default());
        assert_eq!(nothing[1].1, "no server answers");
        assert_eq!(nothing[2].1, "none: no peers are taken");
        let not_taken = |reason: &str, count| NotTakenReport { reason: reason.to_owned(), count };
        let told = DirectoryReport {
            server: Some("a:7707".to_owned()),
            list: Some(4),
            list_age_seconds: Some(120),
            certificates: 3,
            not_taken: vec![not_taken("revoked", 0), not_taken("older_list", 2)],
            ..DirectoryReport::default()
        };
        let said: Vec<String> = lines(&told).into_iter().map(|(_, value)| value).collect();
        assert!(
            said[2].starts_with("number 4, ") && said[2].ends_with("no new peers are taken"),
            "{}",
            said[2]
        );
        let behind = DirectoryReport { clock_behind_seconds: Some(7200), ..told.clone() };
        assert!(lines(&behind)[2].1.contains("the clock is 2 h"), "{}", lines(&behind)[2].1);
        assert_eq!((said[3].as_str(), said[4].as_str()), ("3 good certificates", "2 older_list"));
        assert_eq!((said[5].as_str(), said[6].as_str()), ("", ""), "nothing is looked up");
        let end = |end: &str, count| LookUpEndReport { end: end.to_owned(), count };
        let look_ups = LookUpReport {
            ends: vec![end("found", 3), end("not_found", 1), end("busy", 0)],
            seconds: 8.0,
            longest_seconds: 5.0,
            ..LookUpReport::default()
        };
        let cache = CacheReport {
            cache: "certificates".to_owned(),
            entries: 7,
            pinned: 0,
            hits: 2,
            misses: 4,
            evicted: 1,
            miss_seconds: Some(0.0125),
        };
        let told = DirectoryReport { look_ups: Some(look_ups), caches: vec![cache], ..told };
        let said: Vec<String> = lines(&told).into_iter().map(|(_, value)| value).collect();
        assert!(said[5].starts_with("3 found, 1 not_found; "), "{}", said[5]);
        assert_eq!(said[6], "certificates 7 (2 hits, 4 misses of 12.5 ms, 1 evicted)");
        assert_eq!(said[7], "", "daily keys are not used");
        let daily = DailyKeysReport {
            policy: "require".to_owned(),
            own_until: Some("2026-01-08".to_owned()),
            published: 1,
            peers: 2,
        };
        let told = DirectoryReport { daily_keys: Some(daily), ..told };
        let said: Vec<String> = lines(&told).into_iter().map(|(_, value)| value).collect();
        assert_eq!(said[7], "required; published at 1 server until 2026-01-08; 2 peers with one of today");
    }
}
