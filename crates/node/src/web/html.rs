//! Text and tables as HTML. Nothing gets into a page but through [`escaped`].

/// Most characters of a name or an address: a name in the configuration has 64, a flow with two IPv6 addresses and ports some 100.
const TEXT_MAX: usize = 160;

/// Where the words of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Words, from the left.
    Words(&'static str),
    /// Numbers, from the right.
    Numbers(&'static str),
}

/// Text of anybody's, as HTML takes it in elements and attributes: markup escaped, control characters replaced, and cut where it is
/// longer than what is there can be.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(4 * TEXT_MAX));
    for letter in text.chars().take(TEXT_MAX) {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Also those that turn the direction of the text around them.
            letter if letter.is_control() || is_invisible(letter) => out.push(char::REPLACEMENT_CHARACTER),
            letter => out.push(letter),
        }
    }
    if text.chars().nth(TEXT_MAX).is_some() {
        out.push('\u{2026}');
    }
    out
}

/// Marks and overrides of direction, and characters without width (Unicode Technical Report 36, section 2).
const fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A paragraph.
pub(super) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}

/// A table of these columns; every cell is escaped.
pub(super) fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut out = String::from("<table>\n<thead><tr>");
    for column in columns {
        match column {
            Column::Words(name) => out += &format!("<th scope=\"col\">{}</th>", escaped(name)),
            Column::Numbers(name) => out += &format!("<th scope=\"col\" class=\"n\">{}</th>", escaped(name)),
        }
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in rows {
        out += "<tr>";
        for (column, cell) in columns.iter().zip(row) {
            let class = if matches!(column, Column::Numbers(_)) { " class=\"n\"" } else { "" };
            out += &format!("<td{class}>{}</td>", escaped(&cell));
        }
        out += "</tr>\n";
    }
    out + "</tbody>\n</table>\n"
}
