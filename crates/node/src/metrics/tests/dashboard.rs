//! `packaging/grafana/strait.json` beside what a daemon serves: a dashboard that asks for a metric that is not there shows an empty
//! panel, and says nothing.

use super::reference::everything;
use super::*;
use serde_json::Value;
use std::collections::BTreeMap;

/// The labels of each name that samples have, those of histograms (`_bucket`, `_sum`, `_count`) as they are.
type Exported = BTreeMap<String, BTreeSet<String>>;

/// What Prometheus adds to each sample that it reads.
const SCRAPED: [&str; 2] = ["instance", "job"];

/// What an expression of the dashboard may name that is no metric: operators and functions of PromQL.
const WORDS: [&str; 17] = [
    "and",
    "avg",
    "bool",
    "by",
    "clamp_min",
    "histogram_quantile",
    "increase",
    "label_values",
    "max",
    "min",
    "on",
    "or",
    "rate",
    "sum",
    "topk",
    "unless",
    "without",
];

fn exported(text: &str) -> Exported {
    let mut exported = Exported::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let all = exported.entry(name.to_owned()).or_default();
        let labels = tokens(labels).into_iter().filter_map(|token| match token {
            Token::Word(word) => Some(word),
            Token::Sign(_) => None,
        });
        all.extend(labels);
    }
    exported
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Sign(char),
}

/// Names and signs of PromQL, without strings, numbers, ranges and variables.
fn tokens(expression: &str) -> Vec<Token> {
    let is_word = |character: char| character.is_ascii_alphanumeric() || "_:$".contains(character);
    let mut tokens = Vec::new();
    let mut rest = expression.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '"' => {
                while let Some(inside) = rest.next() {
                    match inside {
                        '\\' => drop(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '[' => while rest.next().is_some_and(|inside| inside != ']') {},
            _ if is_word(character) => {
                let mut word = String::from(character);
                while let Some(next) = rest.next_if(|next| is_word(*next)) {
                    word.push(next);
                }
                if !word.starts_with(|first: char| first.is_ascii_digit() || first == '$') {
                    tokens.push(Token::Word(word));
                }
            }
            _ if character.is_whitespace() => {}
            _ => tokens.push(Token::Sign(character)),
        }
    }
    tokens
}

/// What an expression names: its metrics, the labels in the braces of each, and the labels that it keeps (`by`), if it names those.
#[derive(Debug, Default)]
struct Named {
    metrics: Vec<(String, Vec<String>)>,
    kept: Option<Vec<String>>,
}

fn named(expression: &str) -> Named {
    let mut named = Named::default();
    let mut rest = tokens(expression).into_iter().peekable();
    while let Some(token) = rest.next() {
        let Token::Word(word) = token else { continue };
        let open = rest.peek().cloned();
        let mut group = || -> Vec<String> {
            let inside = rest.by_ref().take_while(|token| !matches!(token, Token::Sign('}' | ')')));
            let word = |token| if let Token::Word(word) = token { Some(word) } else { None };
            inside.filter_map(word).collect()
        };
        match (word.as_str(), open) {
            ("by" | "on", Some(Token::Sign('('))) => named.kept.get_or_insert_default().extend(group()),
            (name, _) if WORDS.contains(&name) => {}
            (_, Some(Token::Sign('{'))) => named.metrics.push((word, group())),
            _ => named.metrics.push((word, Vec::new())),
        }
    }
    named
}

/// What is wrong with an expression, and with the legend beside it.
fn wrong_expression(exported: &Exported, expression: &str, legend: &str) -> Vec<String> {
    let named = named(expression);
    let mut wrong = Vec::new();
    if named.metrics.is_empty() {
        wrong.push(format!("no metric in {expression:?}"));
    }
    let shown: Vec<&str> =
        legend.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap_or_default()).collect();
    for (metric, labels) in &named.metrics {
        let Some(known) = exported.get(metric) else {
            wrong.push(format!("no metric is called {metric}"));
            continue;
        };
        let kept = named.kept.iter().flatten().chain(labels).map(String::as_str);
        for label in kept.chain(shown.iter().copied()) {
            if !known.contains(label) && !SCRAPED.contains(&label) {
                wrong.push(format!("{metric} has no label {label}"));
            }
        }
    }
    for label in shown {
        if named.kept.as_ref().is_some_and(|kept| !kept.iter().any(|one| one == label)) {
            wrong.push(format!("{{{{{label}}}}} is not kept by {expression:?}"));
        }
    }
    wrong
}

fn text_at<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn items<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Everything that is wrong with a dashboard, each with the panel that it is about.
fn wrong(dashboard: &Value, exported: &Exported) -> Vec<String> {
    let mut wrong = Vec::new();
    let variables = items(dashboard, "/templating/list");
    for variable in variables.iter().filter(|variable| text_at(variable, "/type") == "query") {
        let query = text_at(variable, "/query/query");
        let (metric, label) = query.trim_end_matches(')').rsplit_once(", ").unwrap_or((query, ""));
        let legend = format!("{{{{{label}}}}}");
        wrong.extend(
            wrong_expression(exported, metric, &legend).into_iter().map(|it| format!("{query}: {it}")),
        );
    }
    for panel in items(dashboard, "/panels") {
        let title = text_at(panel, "/title");
        let mut panel_wrong = Vec::new();
        for (path, what) in [("/title", "title"), ("/fieldConfig/defaults/unit", "unit")] {
            if text_at(panel, path).is_empty() {
                panel_wrong.push(format!("has no {what}"));
            }
        }
        let targets = items(panel, "/targets");
        if targets.is_empty() {
            panel_wrong.push("asks for nothing".to_owned());
        }
        for asked in targets.iter().chain([panel]) {
            if text_at(asked, "/datasource/uid") != "${datasource}" {
                panel_wrong.push("has a datasource that is not the variable".to_owned());
            }
        }
        for target in targets {
            let (expression, legend) = (text_at(target, "/expr"), text_at(target, "/legendFormat"));
            panel_wrong.extend(wrong_expression(exported, expression, legend));
            panel_wrong.extend(unknown_variables(variables, expression));
        }
        wrong.extend(panel_wrong.into_iter().map(|it| format!("{title}: {it}")));
    }
    wrong
}

/// Variables that an expression uses and the dashboard does not have; Grafana itself has those that begin with `__`.
fn unknown_variables(variables: &[Value], expression: &str) -> Vec<String> {
    let used = expression.split('$').skip(1).map(|rest| {
        rest.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
            .next()
            .unwrap_or("")
    });
    let is_known =
        |name: &str| name.starts_with("__") || variables.iter().any(|one| text_at(one, "/name") == name);
    used.filter(|name| !is_known(name)).map(|name| format!("no variable is called {name}")).collect()
}

fn dashboard() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana/strait.json");
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_dashboard_asks_for_what_is_served() {
    let dashboard: Value = serde_json::from_str(&dashboard()).unwrap();
    assert_eq!(wrong(&dashboard, &exported(&text(&everything()))), [""; 0]);
    assert!(items(&dashboard, "/panels").len() >= 12);
    let datasource = &items(&dashboard, "/templating/list")[0];
    assert_eq!((text_at(datasource, "/name"), text_at(datasource, "/type")), ("datasource", "datasource"));
}

#[test]
fn no_panel_lies_on_another() {
    let dashboard: Value = serde_json::from_str(&dashboard()).unwrap();
    let mut cells = BTreeSet::new();
    for panel in items(&dashboard, "/panels") {
        let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "Grafana has 24 columns: {}", panel["title"]);
        for (x, y) in (0..at("w")).flat_map(|x| (0..at("h")).map(move |y| (x, y))) {
            assert!(cells.insert((at("x") + x, at("y") + y)), "{} lies on another", panel["title"]);
        }
    }
}

/// The dashboard with one change: what the test above must not let pass.
#[test]
fn a_dashboard_that_asks_for_something_else_is_refused() {
    let exported = exported(&text(&everything()));
    for (from, to, expected) in [
        (
            "strait_peer_rtt_seconds",
            "strait_peer_rtt_milliseconds",
            "no metric is called strait_peer_rtt_milliseconds",
        ),
        // Not even with the suffix of a histogram: it is none.
        (
            "strait_peer_rtt_seconds",
            "strait_peer_rtt_seconds_bucket",
            "no metric is called strait_peer_rtt_seconds_bucket",
        ),
        ("by (instance, reason)", "by (instance, peer)", "strait_dropped_packets_total has no label peer"),
        ("{{codec}} sent", "{{peer}} sent", "strait_codec_sent_blocks_total has no label peer"),
        ("by (instance, reason)", "by (instance)", "{{reason}} is not kept by"),
        ("thread=~", "peer=~", "strait_thread_cpu_seconds_total has no label peer"),
        ("instance=~\\\"$instance", "instance=~\\\"$node", "no variable is called node"),
        ("label_values(strait_info, ", "label_values(strait_node, ", "no metric is called strait_node"),
        ("\"unit\": \"pps\"", "\"unit\": \"\"", "has no unit"),
        ("\"title\": \"Loss\"", "\"title\": \"\"", "has no title"),
        ("\"uid\": \"${datasource}\"", "\"uid\": \"mine\"", "has a datasource that is not the variable"),
    ] {
        let text = dashboard();
        assert!(text.contains(from), "{from} is not in the dashboard any more");
        let changed: Value = serde_json::from_str(&text.replace(from, to)).unwrap();
        let wrong = wrong(&changed, &exported);
        assert!(wrong.iter().any(|one| one.contains(expected)), "{to}: {wrong:?} without {expected:?}");
    }
}

#[test]
fn a_histogram_is_asked_for_by_its_suffixes() {
    let with = |bound: &str| (vec![("peer", "b".to_owned()), ("le", bound.to_owned())], 1.0);
    let sum = || (vec![("peer", "b".to_owned())], 1.0);
    let samples = vec![with("0.1"), with("+Inf"), sum(), sum()];
    let exported = exported(&exposition([("wait_seconds", "histogram", "Waits.", samples)]));
    for (expression, expected) in [
        (
            "histogram_quantile(0.95, sum by (le, peer) (rate(strait_wait_seconds_bucket{peer=~\"$peer\"}[5m])))",
            None,
        ),
        ("rate(strait_wait_seconds_sum[5m]) / rate(strait_wait_seconds_count[5m])", None),
        ("rate(strait_wait_seconds[5m])", Some("no metric is called strait_wait_seconds")),
        ("sum by (le) (strait_wait_seconds_count)", Some("strait_wait_seconds_count has no label le")),
        ("sum(1)", Some("no metric in \"sum(1)\"")),
    ] {
        let wrong = wrong_expression(&exported, expression, "");
        assert_eq!(wrong.first().map(String::as_str), expected, "{expression}");
    }
}
