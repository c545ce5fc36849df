use super::*;
use crate::{Axis, Bars, ChartLine, Cluster, Lines};
use proptest::prelude::*;
use roxmltree::{Document, Node};

fn bars(clusters: usize, series: usize, value: impl Fn(usize, usize) -> f64) -> Chart {
    let cluster = |at: usize| Cluster {
        name: if at.is_multiple_of(2) { "1 KiB".to_owned() } else { "63 KiB".to_owned() },
        section: format!("file{}", at / 2),
        values: (0..series).map(|bar| value(at, bar)).collect(),
    };
    Chart {
        title: "A title of some length that says what is to be seen below & <above>".to_owned(),
        source: "where the figures are from, ".repeat(6),
        y: Axis::logarithmic("speedup").at(1.0),
        plot: Plot::Bars(Bars {
            series: (0..series).map(|bar| format!("series {bar}")).collect(),
            clusters: (0..clusters).map(cluster).collect(),
        }),
    }
}

fn lines(count: usize, points: impl Fn(usize) -> Vec<(f64, f64)>) -> Chart {
    let line = |at: usize| ChartLine { name: format!("line {at}"), points: points(at) };
    Chart {
        title: "Lines".to_owned(),
        source: String::new(),
        y: Axis::logarithmic("rate, bit/s").prefixed("bit/s").between(1e4, 1e11),
        plot: Plot::Lines(Lines {
            x: Axis::logarithmic("ratio").between(1.0, 20.0),
            lines: (0..count).map(line).collect(),
        }),
    }
}

fn elements<'a>(document: &'a Document<'_>, name: &str) -> Vec<Node<'a, 'a>> {
    document.descendants().filter(|node| node.has_tag_name(name)).collect()
}

/// Left, top, right and bottom of words.
fn extent(mark: &Mark) -> Option<[f64; 4]> {
    let Mark::Words { words, at, anchor, turned, size, .. } = mark else { return None };
    let length = size.width(words);
    let before = match anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => length / 2.0,
        Anchor::End => length,
    };
    // Of a line's height letters take two thirds.
    let half = size.line() / 3.0;
    Some(if *turned {
        [at.x - half, at.y + before - length, at.x + half, at.y + before]
    } else {
        [at.x - before, at.y - half, at.x - before + length, at.y + half]
    })
}

fn assert_no_words_overlap(drawing: &Drawing) {
    let extents: Vec<[f64; 4]> = drawing.marks.iter().filter_map(extent).collect();
    for (at, one) in extents.iter().enumerate() {
        assert!(one[0] >= 0.0 && one[1] >= 0.0, "{one:?}");
        assert!(one[2] <= drawing.width && one[3] <= drawing.height, "{one:?} in {drawing:?}");
        for other in &extents[at + 1..] {
            let apart = one[2] <= other[0] || other[2] <= one[0] || one[3] <= other[1] || other[3] <= one[1];
            assert!(apart, "{one:?} and {other:?}");
        }
    }
}

#[test]
fn every_value_has_a_bar_on_its_side_of_the_reference() {
    let chart = bars(8, 5, |cluster, bar| if bar == 4 { 0.25 } else { 1.5 + cluster as f64 });
    let text = chart.drawing().svg();
    let document = Document::parse(&text).unwrap();
    let number = |node: &Node<'_, '_>, name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
    let rects = elements(&document, "rect");
    let drawn = |series: usize| -> Vec<&Node<'_, '_>> {
        let Colour([red, green, blue]) = Colour::SERIES[series];
        let fill = format!("#{red:02x}{green:02x}{blue:02x}");
        rects.iter().filter(|node| node.attribute("fill") == Some(fill.as_str())).collect()
    };
    for series in 0..5 {
        // One a cluster, and one in the legend.
        assert_eq!(drawn(series).len(), 9);
    }
    // Bars that stand end where bars that hang begin.
    let foot = number(drawn(0)[1], "y") + number(drawn(0)[1], "height");
    assert!(drawn(4)[1..].iter().all(|bar| (number(bar, "y") - foot).abs() < 0.02));
    let values = elements(&document, "text").iter().filter(|node| node.text() == Some("0.25")).count();
    assert_eq!(values, 8);
    assert!(elements(&document, "title")[0].text().unwrap().ends_with("& <above>"));
}

#[test]
fn words_keep_apart() {
    assert_no_words_overlap(&bars(8, 5, |cluster, bar| 0.123 + (cluster * bar) as f64).drawing());
    assert_no_words_overlap(&bars(2, 1, |_, _| 1234.0).drawing());
    assert_no_words_overlap(&lines(9, |_| vec![(1.5, 1e6)]).drawing());
}

#[test]
fn lines_break_where_they_have_no_value_and_end_at_the_frame() {
    let chart = lines(9, |_| vec![(1.1, 1e5), (1.5, 1e6), (2.0, f64::INFINITY), (3.0, 1e7), (4.0, 1e300)]);
    let drawing = chart.drawing();
    let text = drawing.svg();
    let document = Document::parse(&text).unwrap();
    let drawn = elements(&document, "polyline");
    // Two parts each, and one in the legend.
    assert_eq!(drawn.len(), 27);
    let dashed = drawn.iter().filter(|node| node.attribute("stroke-dasharray").is_some()).count();
    assert_eq!(dashed, 6, "the eighth and the ninth are dashed");
    for node in drawn {
        for place in node.attribute("points").unwrap().split([' ', ',']) {
            assert!((0.0..=drawing.width).contains(&place.parse::<f64>().unwrap()));
        }
    }
}

#[test]
fn charts_above_each_other_share_their_left_side() {
    let upper = lines(2, |_| vec![(1.5, 1e6), (3.0, 2e6)]);
    let lower = Chart {
        title: "Lower".to_owned(),
        y: Axis::linear("s"),
        ..lines(2, |_| vec![(1.5, 1234.5), (3.0, 99_999.0)])
    };
    let both = upper.drawing_above(&lower);
    assert_no_words_overlap(&both);
    let [alone, below] = [upper.drawing(), lower.drawing()];
    assert_eq!((both.width, both.height), (alone.width, alone.height + below.height));
    let text = both.svg();
    let document = Document::parse(&text).unwrap();
    // Behind the two samples of each legend.
    let drawn: Vec<f64> = elements(&document, "polyline")
        .iter()
        .map(|node| node.attribute("points").unwrap().split(',').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(drawn.len(), 8);
    assert!(drawn[2..4] == drawn[6..8] && drawn[2] > drawn[0], "{drawn:?}");
}

#[test]
fn the_png_shows_what_the_svg_shows() {
    let drawing = bars(2, 3, |_, bar| 0.5 + bar as f64).drawing();
    let pixels = crate::png::tests::decoded(&drawing.png());
    assert_eq!(pixels.width, (drawing.width * letters::SCALE).ceil() as usize);
    for mark in &drawing.marks {
        if let Mark::Rectangle { left, top, width, height, colour } = mark
            && Colour::SERIES.contains(colour)
            && *colour != Colour::BLACK
            && *height > 2.0
        {
            let at = |start: f64, length: f64| ((start + length / 4.0) * letters::SCALE) as usize;
            let pixel = (at(*top, *height) * pixels.width + at(*left, *width)) * 3;
            assert_eq!(pixels.bytes[pixel..pixel + 3], colour.0, "{mark:?}");
        }
    }
}

#[test]
fn nothing_to_show_is_still_a_chart() {
    for chart in [bars(0, 0, |_, _| 0.0), lines(0, |_| Vec::new()), bars(1, 1, |_, _| f64::NAN)] {
        let drawing = chart.drawing();
        assert!(Document::parse(&drawing.svg()).is_ok());
        assert!(!drawing.png().is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_values_make_a_chart(values in proptest::collection::vec(any::<f64>(), 0..20), linear: bool) {
        let axis = || if linear { Axis::linear("") } else { Axis::logarithmic("") };
        let cluster = Cluster { name: "a".into(), section: String::new(), values: values.clone() };
        let plot = Plot::Bars(Bars { series: vec!["s".into()], clusters: vec![cluster] });
        let chart = Chart { title: String::new(), source: String::new(), y: axis(), plot };
        prop_assert!(Document::parse(&chart.drawing().svg()).is_ok());
        let points = values.iter().map(|value| (*value, *value)).collect();
        let plot = Plot::Lines(Lines { x: axis(), lines: vec![ChartLine { name: "l".into(), points }] });
        let drawing = Chart { plot, ..chart }.drawing();
        let places = drawing.marks.iter().flat_map(|mark| match mark {
            Mark::Line { points, .. } => points.clone(),
            _ => Vec::new(),
        });
        prop_assert!(places.into_iter().all(|it| it.x.is_finite() && it.y.is_finite()));
    }
}
