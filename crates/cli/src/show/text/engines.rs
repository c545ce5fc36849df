//! The threads that compress, as people read them.

use strait_node::report::{DaemonReport, EngineKind, EngineMethodReport, EngineReport};

use crate::table::{Side, TextTable};

/// The line where there is nothing to share.
const ALONE: &str = "  only one thread compresses: strait-out\n";

/// Each engine with its share of the blocks, and what they take it.
pub(crate) fn render(report: &DaemonReport) -> String {
    let title = format!("engines of {}\n", report.node.interface);
    if report.engines.is_empty() {
        return title + ALONE;
    }
    let heads =
        ["engine", "kind", "blocks", "share", "transfer", "method", "blocks of it", "set-up", "for 1 KiB"];
    let mut table = TextTable::new(heads).side(1, Side::Left).side(5, Side::Left);
    for engine in &report.engines {
        let mut methods = engine.methods.iter();
        table.row(row(engine, methods.next()));
        for method in methods {
            let [.., name, blocks, set_up, bytes] = row(engine, Some(method));
            let none = String::new;
            table.row([none(), none(), none(), none(), none(), name, blocks, set_up, bytes]);
        }
    }
    title + &table.render(2)
}

fn row(engine: &EngineReport, method: Option<&EngineMethodReport>) -> [String; 9] {
    let kind = match engine.kind {
        EngineKind::PacketThread => "packet thread",
        EngineKind::Worker => "worker",
    };
    let share = engine.job_share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let of = |said: &dyn Fn(&EngineMethodReport) -> String| method.map_or("-".to_owned(), said);
    [
        engine.thread.clone(),
        kind.to_owned(),
        engine.jobs.to_string(),
        share,
        micros(engine.transfer_seconds),
        of(&|method| method.method.clone()),
        of(&|method| method.jobs.to_string()),
        of(&|method| micros(method.set_up_seconds)),
        of(&|method| micros(method.byte_seconds * 1024.0)),
    ]
}

fn micros(seconds: f64) -> String {
    format!("{:.1} µs", seconds * 1e6)
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;

    #[test]
    fn engines_beside_each_other() {
        let method = |method: &str, jobs, set_up_seconds, byte_seconds| EngineMethodReport {
            method: method.to_owned(),
            jobs,
            set_up_seconds,
            byte_seconds,
        };
        let engine = |thread: &str, kind, jobs, transfer_seconds, methods| EngineReport {
            thread: thread.to_owned(),
            kind,
            jobs,
            job_share: Some(jobs as f64 / 100.0),
            transfer_seconds,
            methods,
        };
        let (fast, slow) = (method("zstd-3", 80, 2e-5, 1e-8), method("zstd-3", 18, 8e-5, 4e-8));
        let engines = vec![
            engine("strait-out", EngineKind::PacketThread, 80, 0.0, vec![fast]),
            engine("strait-out-1", EngineKind::Worker, 20, 2e-5, vec![slow, method("lz4", 2, 1e-6, 1e-9)]),
            engine("strait-out-2", EngineKind::Worker, 0, 2e-5, Vec::new()),
        ];
        let shown = render(&DaemonReport { engines, ..report() });
        let expected = "\
engines of strait0
  engine        kind           blocks   share  transfer  method  blocks of it   set-up  for 1 KiB
  strait-out    packet thread      80  80.0 %    0.0 µs  zstd-3            80  20.0 µs    10.2 µs
  strait-out-1  worker             20  20.0 %   20.0 µs  zstd-3            18  80.0 µs    41.0 µs
                                                         lz4                2   1.0 µs     1.0 µs
  strait-out-2  worker              0   0.0 %   20.0 µs  -                  -        -          -
";
        assert_eq!(shown, expected, "\n{shown}");
    }

    #[test]
    fn one_engine_has_nothing_to_share() {
        assert_eq!(render(&report()), format!("engines of strait0\n{ALONE}"));
    }
}
