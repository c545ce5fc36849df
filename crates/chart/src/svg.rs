//! A drawing as SVG 1.1.

use std::fmt::Write;

use crate::drawing::{Anchor, Colour, Dashes, Drawing, Mark, Point};

/// Fonts whose letters are as wide as the layout has them, then any that is monospaced.
const FONTS: &str = "'Noto Sans Mono','DejaVu Sans Mono','Liberation Mono',Menlo,monospace";
/// How far below the middle of a capital letter its foot is, over the size of the font (Noto Sans Mono: capitals are
/// 0.714 high).
const FOOT: f64 = 0.357;

/// The drawing as one element.
pub(crate) fn render(drawing: &Drawing) -> String {
    let Drawing { width, height, title, marks } = drawing;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{FONTS}\"><title>{}</title>\n",
        escaped(title)
    );
    for mark in marks {
        out.push_str(&element(mark));
        out.push('\n');
    }
    out.push_str("</svg>\n");
    out
}

fn element(mark: &Mark) -> String {
    match mark {
        Mark::Rectangle { left, top, width, height, colour } => format!(
            "<rect x=\"{left:.2}\" y=\"{top:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{}\"/>",
            hex(*colour)
        ),
        Mark::Line { points, width, colour, dashes } => line(points, *width, *colour, dashes),
        Mark::Words { words, at, anchor, turned, size, colour } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let turn = if *turned { " rotate(-90)" } else { "" };
            let font = size.font();
            format!(
                "<text transform=\"translate({:.2} {:.2}){turn}\" y=\"{:.2}\" font-size=\"{font:.2}\" \
                 text-anchor=\"{anchor}\" fill=\"{}\">{}</text>",
                at.x,
                at.y,
                font * FOOT,
                hex(*colour),
                escaped(words)
            )
        }
    }
}

fn line(points: &[Point], width: f64, colour: Colour, dashes: Dashes) -> String {
    let mut places = String::new();
    for Point { x, y } in points {
        let _ = write!(places, "{}{x:.2},{y:.2}", if places.is_empty() { "" } else { " " });
    }
    let lengths: Vec<String> = dashes.iter().map(f64::to_string).collect();
    let gaps = if dashes.is_empty() {
        String::new()
    } else {
        format!(" stroke-dasharray=\"{}\"", lengths.join(" "))
    };
    format!(
        "<polyline points=\"{places}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" \
         stroke-linecap=\"round\" stroke-linejoin=\"round\"{gaps}/>",
        hex(colour)
    )
}

fn hex(colour: Colour) -> String {
    let Colour([red, green, blue]) = colour;
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Text as XML 1.0 takes it, inside elements and attributes: what is markup escaped, what is no character replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Production 2 of XML 1.0 leaves these out.
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                out.push(char::REPLACEMENT_CHARACTER);
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::letters::Size;
    use proptest::prelude::*;

    proptest! {
        // Without carriage returns, which parsers read as line ends (section 2.11 of XML 1.0).
        #[test]
        fn any_words_come_back_from_a_parser(words in "(\\PC|[\\x00-\\x0c\\x0e-\\x1f])*") {
            let mark = Mark::Words {
                words: words.clone(),
                at: Point { x: 1.0, y: 2.0 },
                anchor: Anchor::Middle,
                turned: true,
                size: Size::Normal,
                colour: Colour::BLACK,
            };
            let drawing = Drawing { width: 10.0, height: 10.0, title: words.clone(), marks: vec![mark] };
            let text = drawing.svg();
            let document = roxmltree::Document::parse(&text).unwrap();
            let character = |letter: char| letter >= ' ' || letter == '\n' || letter == '\t';
            let expected: String = words.chars().map(|it| if character(it) { it } else { '\u{fffd}' }).collect();
            for name in ["title", "text"] {
                let node = document.descendants().find(|node| node.has_tag_name(name)).unwrap();
                prop_assert_eq!(node.text().unwrap_or_default(), &expected);
            }
        }
    }
}
