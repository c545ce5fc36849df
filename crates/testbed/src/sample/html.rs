//! Pages of a staff handbook: navigation, paragraphs, lists and tables.

use strait_clock::Random;

use super::date::{Moment, START};
use super::phrase::{any, between, favour, once_in, person, sentence, zipf};
use super::vocabulary::{PRODUCTS, SITES, WORDS};

/// About `size` bytes of pages one after another, ending with a whole element.
pub(super) fn write(random: &mut Random, size: usize) -> Vec<u8> {
    let mut out = String::with_capacity(size + 8192);
    let mut page = 1;
    while out.len() < size {
        out.push_str(&head(random, page));
        for section in 1..=between(random, 5, 9) {
            out.push_str(&heading(random, page, section));
            for _ in 0..between(random, 2, 5) {
                out.push_str(&element(random));
            }
            if out.len() >= size {
                break;
            }
        }
        out.push_str("</main>\n<footer class=\"page-footer\"><a href=\"/imprint\">Imprint</a> &middot; Operations handbook</footer>\n</body>\n</html>\n");
        page += 1;
    }
    out.into_bytes()
}

fn head(random: &mut Random, page: u64) -> String {
    let title = title(random);
    let (given, family) = person(random);
    let navigation: String = ["Start", "Pumps", "Valves", "Safety", "Network", "Stock", "Contacts"]
        .iter()
        .map(|entry| {
            format!(
                "    <li class=\"nav-item\"><a class=\"nav-link\" href=\"/wiki/{entry}\">{entry}</a></li>\n"
            )
        })
        .collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title} - Operations handbook</title>\n\
         <link rel=\"stylesheet\" href=\"/static/style.css\">\n</head>\n<body class=\"handbook\">\n<nav class=\"sidebar\">\n  <ul>\n\
         {navigation}  </ul>\n</nav>\n<main id=\"page-{page}\">\n<h1>{title}</h1>\n\
         <p class=\"meta\">Revised {} by {given} {family}</p>\n",
        Moment::from_unix(START - random.below(30_000_000)).date(),
    )
}

fn title(random: &mut Random) -> String {
    format!(
        "{} {} {}",
        any(random, &WORDS[22..]),
        favour(random, &["and", "of", "for"]),
        any(random, &WORDS[22..])
    )
}

fn heading(random: &mut Random, page: u64, section: u64) -> String {
    format!("<h2 id=\"s{page}-{section}\">{page}.{section} {}</h2>\n", title(random))
}

fn element(random: &mut Random) -> String {
    match random.below(6) {
        0 => table(random),
        1 => list(random),
        _ => paragraph(random),
    }
}

fn paragraph(random: &mut Random) -> String {
    let sentences: Vec<String> = (0..between(random, 2, 6))
        .map(|_| {
            let length = between(random, 6, 22);
            sentence(random, length)
        })
        .collect();
    let link = if once_in(random, 3) {
        format!(" See <a href=\"/wiki/{0}\">{0}</a>.", any(random, &WORDS[22..]))
    } else {
        String::new()
    };
    format!("<p>{}{link}</p>\n", sentences.join(" "))
}

fn list(random: &mut Random) -> String {
    let entries: String = (0..between(random, 3, 8))
        .map(|_| {
            let length = between(random, 4, 11);
            format!("  <li>{}</li>\n", sentence(random, length))
        })
        .collect();
    format!("<ol class=\"steps\">\n{entries}</ol>\n")
}

fn table(random: &mut Random) -> String {
    let rows: String = (0..between(random, 3, 12))
        .map(|_| {
            format!(
                "  <tr><td>{}</td><td class=\"number\">{}</td><td>{}</td><td>{}</td></tr>\n",
                favour(random, &PRODUCTS),
                between(random, 0, 400),
                any(random, &SITES),
                ["in stock", "ordered", "on request"][zipf(random, 3)],
            )
        })
        .collect();
    format!(
        "<table class=\"stock\">\n  <tr><th>Part</th><th>Quantity</th><th>Site</th><th>State</th></tr>\n{rows}</table>\n"
    )
}
