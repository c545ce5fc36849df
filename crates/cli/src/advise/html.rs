//! A report as one file that any browser shows: nothing is fetched, nothing runs.

use strait_advise::AdviseReport;
use strait_advise::report::AdviseVerdict;

use super::charts::charts;
use super::classes::{self, SAMPLING};
use super::{content, keys};
use crate::table::{Side, TextTable};

/// What everything looks like, also where grounds are dark.
const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.45 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}\
.verdict{font-size:1.1rem;font-weight:600}\
.wide{overflow-x:auto}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums}\
th,td{padding:.2rem .7rem;text-align:left;border-bottom:1px solid #8884;white-space:nowrap}\
.number{text-align:right}\
svg{background:#fff;max-width:100%;height:auto;margin:1rem 0;display:block}";

/// The whole report.
pub(super) fn render(report: &AdviseReport) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>What a tunnel would save</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>What a tunnel would save</h1>\n{}<p>{}</p>\n",
        content::today(report).map_or(String::new(), |today| paragraph("verdict", &today))
            + &paragraph("verdict", &content::verdict(report)),
        escaped(&content::extent(report))
    );
    out.push_str(&table(&content::whole(report, true)));
    out.push_str(&paragraph("", &content::returned(report)));
    let policies = content::policies(report);
    if !policies.is_empty() {
        out.push_str(&paragraph("", content::POLICIES));
        out.push_str(&table(&policies));
    }
    let rules = content::rules(report);
    if !rules.is_empty() {
        out.push_str(&format!("{}<pre>{}</pre>\n", paragraph("", content::RULES), escaped(&rules)));
    }
    if let Some(advice) = &report.key_caches {
        out.push_str(&format!("<h2>Caches of keys</h2>\n{}", paragraph("", &keys::verdict(advice))));
        out.push_str(&table(&keys::tiers(advice)));
        out.extend(keys::notes(advice).iter().map(|note| paragraph("", note)));
        out.push_str(&format!("{}<pre>{}</pre>\n", paragraph("", keys::PASTE), escaped(&advice.toml)));
    }
    let compared = classes::compared(report);
    if report.total.verdict != AdviseVerdict::Empty {
        out.extend(charts(report, &compared).iter().map(|chart| chart.drawing().svg() + "\n"));
        for (head, group) in classes::kinds(report) {
            out.push_str(&format!("<h2>By {head}</h2>\n{}", table(&classes::classes(head, group, report))));
            out.extend(classes::rest(group).map(|rest| paragraph("", &rest)));
        }
    }
    if let Some(codecs) = classes::codecs(&compared) {
        out.push_str(&format!("<h2>By codec</h2>\n{}", table(&codecs)));
        out.extend(SAMPLING.map(|line| paragraph("", line)));
    }
    out.push_str(&format!("<h2>Input</h2>\n{}", table(&content::inputs(report))));
    let stopped =
        report.inputs.iter().filter_map(|input| Some(format!("{} {}", input.name, input.error.as_ref()?)));
    out.extend(stopped.chain(content::notes(report)).map(|note| paragraph("", &note)));
    out.push_str("</body>\n</html>\n");
    out
}

fn paragraph(class: &str, words: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<p{class}>{}</p>\n", escaped(words))
}

fn table(table: &TextTable) -> String {
    let mut out = "<div class=\"wide\"><table>\n".to_owned();
    for (at, row) in table.rows().enumerate() {
        let tag = if at == 0 { "th" } else { "td" };
        out.push_str("<tr>");
        for (cell, side) in row {
            let class = if side == Side::Right { " class=\"number\"" } else { "" };
            out.push_str(&format!("<{tag}{class}>{}</{tag}>", escaped(cell)));
        }
        out.push_str("</tr>\n");
    }
    out + "</table></div>\n"
}

/// Text as HTML has it: names of files may hold anything.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_their_cells() {
        let mut rows = TextTable::new(["<file>", "size"]);
        rows.row(["a&b\"<script>".to_owned(), "5".to_owned()]);
        let html = table(&rows);
        assert!(html.contains("<th>&lt;file&gt;</th><th class=\"number\">size</th>"), "{html}");
        assert!(html.contains("<td>a&amp;b&quot;&lt;script&gt;</td><td class=\"number\">5</td>"), "{html}");
    }
}
