use super::*;
use crate::steps::Effort;
use serde_json::json;
use strait_model::{BitRate, Cost, Seconds};

fn seen(megabits: f64, blocks: Option<AverageBlocks>, choice: Option<&str>) -> StreamResult {
    StreamResult {
        goodput: megabits * 1e6 / 8.0,
        work: Work::default(),
        blocks,
        decision: choice.map(|choice| json!({ "choice": choice })),
        others: 0.0,
    }
}

/// A link of 10 Mbit/s, LZ4 alone, and what came of every way.
fn cell(rounds: &Rounds) -> FindingCell {
    let mut grid = VerifyGrid::new(Effort::Quick, Vec::new());
    grid.methods.truncate(1);
    let rate = strait_scheduler::Rate::from_bits(10_000_000);
    let place = GridPlace::new(rate, 65_536, Effort::Quick);
    let model = PlainTunnelTimes { link: BitRate::megabits(10.0), work: Work::default(), processors: 2 };
    let codec =
        MethodTimes { compress: Cost::FREE, expand: Cost { set_up: Seconds(0.0), per_byte: Seconds(1e-9) } };
    let content = Content { name: "text", bytes: [0; 4].into() };
    FindingCell::new(&grid, &place, &content, &[codec], rounds, &model)
}

const HALF: Option<AverageBlocks> = Some(AverageBlocks { before: 64_000.0, after: 32_000.0, beside: 0.0 });

#[test]
fn a_cell_has_medians_errors_and_the_choice() {
    let round =
        |lz4| vec![seen(9.0, None, None), seen(lz4, HALF, Some("lz4")), seen(17.5, HALF, Some("zstd-1"))];
    let cell = cell(&vec![round(18.0), round(17.0), round(19.0)]);
    let lz4 = &cell.tried[0];
    assert_eq!((lz4.speedup, lz4.ratio, lz4.limit), (2.0, Some(2.0), Some("link")));
    assert!(lz4.error().abs() < 0.01, "{}", lz4.error());
    assert_eq!(cell.pick.methods().collect::<Vec<_>>(), ["zstd-1"; 3]);
    assert_eq!((cell.pick.best.as_str(), cell.pick.is_right()), ("lz4", true));
}

#[test]
fn a_choice_far_below_the_best_is_wrong() {
    let cell = cell(&vec![vec![seen(9.0, None, None), seen(8.0, HALF, None), seen(8.0, HALF, Some("lz4"))]]);
    assert_eq!((cell.pick.best.as_str(), cell.pick.is_right()), ("none", false));
    assert!((cell.pick.short - 1.0 / 9.0).abs() < 1e-9);
    let summary = FindingSummary::of([cell].iter());
    assert_eq!((summary.cells, summary.right), (1, 0.0));
    assert!(summary.link.count == 1 && summary.link.median > 1.0, "{summary:?}");
    assert!(summary.processors.count == 0 && summary.processors.median.is_nan(), "{summary:?}");
}

#[test]
fn what_was_not_compressed_is_predicted_to_be_as_fast_as_without() {
    let cell = cell(&vec![vec![seen(9.0, None, None), seen(9.0, None, None), seen(9.0, None, None)]]);
    assert_eq!((cell.tried[0].predicted, cell.tried[0].limit, cell.tried[0].block), (1.0, None, None));
    assert_eq!(cell.pick.methods().collect::<Vec<_>>(), ["none"]);
    // And that is no prediction.
    assert_eq!(FindingSummary::of([cell].iter()).link.count, 0);
}
