//! Seeds of operations that are compared with a reference model.

use super::Seed;

/// Settings, then operations: 0 sends, 12 releases, 15 lets time pass, 19 delivers, 23 and on are mishaps, 32 has a worker
/// end a job, 36 and on change something. Which of 56 kinds, between whom, and two bytes more.
pub fn operations_data_seeds() -> Vec<Seed> {
    let seed = |settings: [u8; 4], operations: &[[u8; 4]]| [&settings[..], &operations.concat()].concat();
    let (text, large, whole) = ([0, 0, 0, 0x1d], [0, 0, 3, 0x1f], [0, 0, 1, 0x2f]);
    let (release, pass, deliver) = ([12, 0, 0, 0], [15, 0, 5, 3], [19, 0, 9, 0]);
    vec![
        ("operations_data", "straight", seed([0, 0, 0, 0], &[text, release, deliver])),
        (
            "operations_data",
            "paced",
            seed([0x10, 0, 21, 0], &[text, text, pass, deliver, text, pass, deliver]),
        ),
        (
            "operations_data",
            "parts",
            seed([0, 0, 21, 0], &[large, pass, [26, 0, 0, 0], [23, 0, 4, 0], deliver]),
        ),
        (
            "operations_data",
            "workers",
            seed([0x15, 0, 0, 0], &[whole, whole, release, [32, 0, 1, 0], deliver]),
        ),
        (
            "operations_data",
            "copies",
            seed([0, 0, 0, 8], &[text, release, [25, 0, 2, 0], [30, 0, 3, 40], [29, 0, 5, 2], deliver]),
        ),
        (
            "operations_data",
            "pieces",
            seed([0, 7, 21, 0], &[large, pass, [28, 0, 0, 0], deliver, large, [31, 0, 0, 0], pass]),
        ),
        (
            "operations_data",
            "peer-goes",
            seed(
                [0x15, 0, 5, 0],
                &[text, whole, [40, 0, 0, 0], text, [41, 0, 0, 0], [36, 0, 0, 0], text, pass],
            ),
        ),
        (
            "operations_data",
            "association-changes",
            seed(
                [0x1d, 0, 37, 1],
                &[whole, [53, 2, 175, 0], [53, 2, 123, 0], release, [36, 2, 5, 0], release],
            ),
        ),
        (
            "operations_data",
            "small-blocks-only",
            seed([0, 4, 0, 0], &[[0, 0, 14, 0x17], [0, 0, 3, 0x17], release, deliver]),
        ),
        (
            "operations_data",
            "withdrawn-with-jobs-away",
            seed([0x91, 0, 0, 0], &[[0, 0, 14, 26], [32, 0, 188, 0], [53, 2, 15, 0], [38, 0, 0, 0], release]),
        ),
        (
            "operations_data",
            "rules-and-rates",
            seed(
                [0x40, 0, 9, 4],
                &[text, [46, 0, 7, 0], text, [43, 0, 30, 3], text, [45, 0, 4, 9], pass, [44, 0, 9, 0]],
            ),
        ),
        (
            "operations_data",
            "oddities",
            seed(
                [0, 5, 0, 0],
                &[[51, 0, 2, 0], [52, 0, 1, 0], [52, 0, 1, 1], [50, 0, 1, 200], [50, 0, 2, 1], text],
            ),
        ),
    ]
}

/// Settings, then operations: 0 lets time pass, 7 has nodes talk, 14 sets the weather, 18 and on break something.
pub fn operations_keys_seeds() -> Vec<Seed> {
    let seed = |settings: [u8; 3], operations: &[[u8; 3]]| [&settings[..], &operations.concat()].concat();
    let talk = [7, 0, 50];
    vec![
        ("operations_keys", "quiet", seed([1, 0, 2], &[])),
        ("operations_keys", "few-packets-a-key", seed([2, 0, 4], &[talk, talk, talk])),
        ("operations_keys", "short-lifetime", seed([3, 3, 0], &[[7, 0, 200], [0, 0, 15]])),
        ("operations_keys", "losses", seed([4, 0, 2], &[[18, 0, 3], [18, 1, 9], talk, [14, 0, 0x7b], talk])),
        (
            "operations_keys",
            "restart",
            seed([5, 2, 2], &[talk, [20, 1, 0], [11, 0, 0], [0, 0, 4], [20, 0, 0], talk]),
        ),
        (
            "operations_keys",
            "both-move",
            seed([6, 10, 18], &[talk, [22, 0, 0], [22, 1, 0], talk, [31, 0, 1], talk]),
        ),
        (
            "operations_keys",
            "peer-goes",
            seed([7, 0, 10], &[talk, [25, 1, 16], talk, [26, 1, 16], [0, 0, 3]]),
        ),
        ("operations_keys", "exhausted", seed([8, 0, 3], &[talk, [28, 0, 5], talk, [28, 1, 7], [28, 0, 7]])),
        (
            "operations_keys",
            "forged",
            seed([9, 0, 3], &[talk, [29, 0, 4], [29, 0, 5], [0, 0, 4], [29, 0, 8], talk]),
        ),
    ]
}
