use strait_keying::sessionless::{DailyKeys, Day, key_name};

use super::*;

/// Keys of a node for `days` from the day of [`NOW`] on, signed `later` seconds after it.
fn daily(node: u8, later: u64, days: usize) -> DailyKeys {
    let own = PrivateKey::generate(&[node; 32]);
    DailyKeys::sign(&own, (NOW + later) * 1_000_000, Day::at(NOW), &vec![[7; 32]; days])
}

fn answer(keys: &DailyKeys) -> Answer {
    Answer::DailyKeys(keys.as_bytes().into())
}

fn holder_of_one() -> Holder {
    let mut holder = holder();
    holder.take(&list(1, NOW, &[]), NOW).unwrap();
    holder.take(&certificate(1, 1), NOW).unwrap();
    holder
}

#[test]
fn only_newer_keys_of_nodes_with_certificates_are_taken() {
    let mut holder = holder_of_one();
    let nothing = Ok((News::Nothing, vec![]));
    assert_eq!(holder.take(&answer(&daily(2, 0, 8)), NOW), nothing, "it has no certificate");
    let (first, newer) = (daily(1, 0, 8), daily(1, 1, 8));
    let taken = Ok((News::DailyKeys, vec![Change::DailyKeys(key(1))]));
    assert_eq!(holder.take(&answer(&first), NOW), taken);
    assert_eq!(holder.take(&answer(&first), NOW), nothing, "once is enough");
    assert_eq!(holder.take(&answer(&newer), NOW), taken);
    assert_eq!(holder.take(&answer(&first), NOW), nothing, "it is older");
    assert_eq!(holder.take(&answer(&daily(1, 3600, 8)), NOW), nothing, "it is from the future");
    assert_eq!(holder.take(&answer(&daily(1, 2, 8)), NOW + 30 * 86_400), nothing, "its days are over");
    assert_eq!(holder.daily_keys(&key(1)), Some(&newer));
    // What the node did not sign is a lie of the directory.
    let mut forged = daily(1, 5, 8).as_bytes().to_vec();
    forged[60] ^= 1;
    assert!(holder.take(&Answer::DailyKeys(forged.into()), NOW).unwrap_err().contains("did not sign"));
    // A node that is revoked has none any more.
    holder.take(&list(2, NOW, &[1]), NOW).unwrap();
    assert_eq!(holder.daily_keys(&key(1)), None);
    assert_eq!(holder.take(&answer(&daily(1, 9, 8)), NOW), nothing);
}

#[test]
fn they_are_found_again_on_the_disk() {
    let mut before = holder_of_one();
    before.take(&answer(&daily(1, 0, 8)), NOW).unwrap();
    let kept: Vec<Answer> = before.all().collect();
    let mut after = holder();
    after.restore(kept, NOW + 10);
    assert_eq!(after.daily_keys(&key(1)), Some(&daily(1, 0, 8)));
}

#[test]
fn keys_that_are_missing_are_asked_for_sooner_than_those_that_are_known() {
    let mut holder = holder_of_one();
    let name = vec![key_name(&key(1))];
    assert_eq!(holder.ask_for_daily_keys(NOW, 0), []);
    assert_eq!(holder.ask_for_daily_keys(NOW, 9), name);
    assert_eq!(holder.ask_for_daily_keys(NOW + 299, 9), []);
    assert_eq!(holder.ask_for_daily_keys(NOW + 300, 9), name);
    holder.take(&answer(&daily(1, 301, 8)), NOW + 301).unwrap();
    assert_eq!(holder.ask_for_daily_keys(NOW + 3899, 9), []);
    assert_eq!(holder.ask_for_daily_keys(NOW + 3900, 9), name);
    // The last day of what is known is no reason to wait.
    let last = NOW + 7 * 86_400;
    assert_eq!(holder.ask_for_daily_keys(last, 9), name);
    assert_eq!(holder.ask_for_daily_keys(last + 300, 9), name);
}
