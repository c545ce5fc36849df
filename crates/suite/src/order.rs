//! The order in which tests begin: the longest first, by what they took before.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::pool::{Outcome, Test};

/// The long tests of one run, as [`write()`] wrote them: for the first run in a folder.
const LONG: &str = include_str!("long.txt");

/// Sorts tests so that those which took longest come first; others keep their order.
pub(crate) fn longest_first(tests: &mut [Test<'_>], times: Option<&Path>) {
    let text = times.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    let known = parse(&text);
    let usual = parse(LONG);
    tests.sort_by_cached_key(|test| {
        let name = test.full_name();
        std::cmp::Reverse(known.get(&*name).or_else(|| usual.get(&*name)).copied().unwrap_or_default())
    });
}

/// Milliseconds by name: lines of a name, milliseconds, and more that is for people.
fn parse(text: &str) -> BTreeMap<&str, u64> {
    let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields.filter_map(|fields| Some((*fields.first()?, fields.get(1)?.parse().ok()?))).collect()
}

/// Writes what each test took, the longest first: its name, milliseconds, and milliseconds of processors.
pub(crate) fn write(results: &[Outcome<'_>], times: Option<&Path>) -> Result<(), String> {
    let Some(path) = times else { return Ok(()) };
    let mut sorted: Vec<&Outcome<'_>> = results.iter().collect();
    sorted.sort_by_key(|it| std::cmp::Reverse(it.took));
    let line = |it: &Outcome<'_>| {
        format!("{} {} {}\n", it.test.full_name(), it.took.as_millis(), it.computed.as_millis())
    };
    let text: String = sorted.into_iter().map(line).collect();
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
