//! Figures 6 to 9 and a hub, measured with tunnels between hosts.

use serde_json::Value;
use strait_testbed::sandbox;

use super::{interrupted, json, lab, prints, text};

/// True if every figure of these cells is above zero.
fn are_positive(cells: &[Value], figures: &[&str]) -> bool {
    let positive =
        |cell: &Value, figure: &str| cell.pointer(figure).and_then(Value::as_f64).is_some_and(|it| it > 0.0);
    cells.iter().all(|cell| figures.iter().all(|figure| positive(cell, figure)))
}

fn notes(report: &Value) -> String {
    report["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_corner_of_figure_9_is_measured_beside_the_equation() {
    if !sandbox::allows_tests() {
        return;
    }
    let report = json(&["vpn", "--measure", "--quick", "--json"]);
    let cells = report["cells"].as_array().unwrap();
    // Two protections, two payloads of a file, two networks.
    assert_eq!(cells.len(), 2 * 2 * 2);
    let forms = ["in_flight", "one_after_another"];
    for form in forms.map(|form| ["measured", "equation", "with_daemons"].map(|it| format!("/{form}/{it}"))) {
        assert!(are_positive(cells, &form.each_ref().map(String::as_str)), "{report:#}");
    }
    let seconds = ["/plain/between_arrivals", "/plain/link", "/compressed/sender", "/compressed/receiver"];
    assert!(are_positive(cells, &seconds), "{report:#}");
    let judgements = report["claims"].as_array().unwrap().iter();
    let judgements = judgements.flat_map(|claim| claim["judgements"].as_array().unwrap());
    assert!(["tunnel", "stages"].iter().all(|it| judgements.clone().any(|judged| judged["figures"] == *it)));
    let said = notes(&report);
    assert!(said.contains("% of a processor") || said.contains("at full speed only"), "{said}");
}

#[test]
fn a_hub_of_clients_is_measured_beside_the_model() {
    if !sandbox::allows_tests() {
        return;
    }
    let some = ["vpn", "--measure", "--pipeline", "--clients", "2", "--processors", "2", "--quick"];
    let report = json(&[&some[..], &["--json"]].concat());
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2, "one processor and two");
    assert!(are_positive(cells, &["/measured", "/model", "/with_daemons"]), "{report:#}");
    let many = lab(&["vpn", "--measure", "--pipeline", "--clients", "17"]);
    let said = String::from_utf8_lossy(&many.stderr);
    assert!(!many.status.success() && said.contains("name at most 16"), "{said}");
}

#[test]
#[ignore = "half a minute of each form"]
fn measured_figures_have_every_form() {
    if !sandbox::allows_tests() {
        return;
    }
    prints(
        &["vpn", "--measure", "--quick"],
        &[
            "Figure 9, measured with tunnels, 3DES/SHA-1, packets in flight",
            "with daemons",
            "% of a processor",
        ],
    );
    let lines = text(&lab(&["vpn", "--measure", "--quick", "--csv"]));
    assert!(lines.contains(",10 Mbit/s,speedup,"), "{lines}");
}

#[test]
fn interrupted_amid_tunnels_it_leaves_nothing_behind() {
    if sandbox::allows_tests() {
        interrupted::leaves_nothing_behind(&["vpn", "--measure", "--quick"], "up ");
    }
}
