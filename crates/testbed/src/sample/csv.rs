//! Telemetry of pumping stations: time, place, a few measurements that wander, a state.

use strait_clock::Random;

use super::date::{Moment, START};
use super::phrase::{once_in, zipf};
use super::vocabulary::SITES;

const HEAD: &str = "time,site,device,inlet_bar,outlet_bar,flow_m3h,motor_a,temperature_c,level_pct,state\n";

/// What is measured, in thousandths of its unit: where it starts and how far it may wander in a step.
const MEASURED: [(u64, u64); 6] =
    [(1_800, 40), (6_200, 90), (42_000, 800), (11_500, 300), (48_000, 200), (71_000, 150)];

/// About `size` bytes of rows, ending with a whole one.
pub(super) fn write(random: &mut Random, size: usize) -> Vec<u8> {
    let mut out = String::with_capacity(size + 256);
    out.push_str(HEAD);
    let mut devices: Vec<[u64; 6]> = vec![MEASURED.map(|(start, _)| start); 12];
    let mut now = START;
    while out.len() < size {
        for (index, values) in devices.iter_mut().enumerate() {
            if out.len() < size {
                out.push_str(&row(random, now, index, values));
            }
        }
        now += 10;
    }
    out.into_bytes()
}

fn row(random: &mut Random, now: u64, index: usize, values: &mut [u64; 6]) -> String {
    // A meter reports a change only when it exceeds its dead band, so some readings repeat.
    for (value, (start, step)) in values.iter_mut().zip(MEASURED) {
        if !once_in(random, 4) {
            let wander = *value + random.below(2 * step);
            *value = wander.saturating_sub(step).clamp(start / 2, start * 3 / 2);
        }
    }
    let when = Moment::from_unix(now);
    let shown: Vec<String> =
        values.iter().zip([2, 2, 1, 1, 1, 1]).map(|(value, places)| decimal(*value, places)).collect();
    format!(
        "{}T{:02}:{:02}:{:02}Z,{},pump-{:02},{},{}\n",
        when.date(),
        when.hour,
        when.minute,
        when.second,
        SITES.get(index / 2).copied().unwrap_or_default(),
        index + 1,
        shown.join(","),
        ["run", "run", "standby", "run", "fault"][zipf(random, 5)],
    )
}

/// A value in thousandths with one or two digits behind the point.
fn decimal(thousandths: u64, places: u32) -> String {
    let scale = 10_u64.pow(3 - places);
    let unit = 10_u64.pow(places);
    let rounded = thousandths / scale;
    format!("{}.{:0width$}", rounded / unit, rounded % unit, width = usize::try_from(places).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals() {
        assert_eq!(decimal(1_805, 2), "1.80");
        assert_eq!(decimal(42_050, 1), "42.0");
        assert_eq!(decimal(71_999, 1), "71.9");
    }

    #[test]
    fn every_row_has_as_many_fields_as_the_head() {
        let text = String::from_utf8(write(&mut Random::new(3), 20_000)).unwrap();
        let fields = HEAD.matches(',').count();
        assert!(text.lines().all(|line| line.matches(',').count() == fields));
    }
}
