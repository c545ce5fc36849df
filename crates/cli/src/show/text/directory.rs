//! The directory that a node follows.

use std::time::Duration;

use strait_node::report::DirectoryReport;

use crate::units::{self, counted};

/// What is shown of it, a line each.
pub(super) fn lines(told: &DirectoryReport) -> Vec<(&'static str, String)> {
    let list = match (told.list, told.list_age_seconds) {
        (Some(number), Some(age)) => {
            let old = if told.is_fresh { "" } else { ": too old, no new peers are taken" };
            format!("number {number}, {} old{old}", units::span(Duration::from_secs(age)))
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
        ("outside limits", outside.unwrap_or_default()),
        ("last failure", told.last_failure.clone().unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_node::report::NotTakenReport;

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
        assert_eq!((said[3].as_str(), said[4].as_str()), ("3 good certificates", "2 older_list"));
    }
}
