//! A drawing as pixels.

use crate::drawing::{Anchor, Colour, Dashes, Drawing, Mark, Point};
use crate::letters::{SCALE, Size};
use crate::png::Pixels;

/// The drawing at [`SCALE`], on white.
pub(crate) fn render(drawing: &Drawing) -> Pixels {
    let size = |length: f64| (length * SCALE).ceil().max(1.0) as usize;
    let (width, height) = (size(drawing.width), size(drawing.height));
    let mut canvas = Pixels { width, height, bytes: vec![255; width * height * 3] };
    for mark in &drawing.marks {
        canvas.draw(mark);
    }
    canvas
}

fn scaled(point: Point) -> Point {
    Point { x: point.x * SCALE, y: point.y * SCALE }
}

impl Pixels {
    fn draw(&mut self, mark: &Mark) {
        match mark {
            Mark::Rectangle { left, top, width, height, colour } => {
                let (from, to) = (Point { x: *left, y: *top }, Point { x: left + width, y: top + height });
                self.rectangle(scaled(from), scaled(to), *colour);
            }
            Mark::Line { points, width, colour, dashes } => {
                let points: Vec<Point> = points.iter().map(|point| scaled(*point)).collect();
                self.line(&dashed(&points, dashes), width * SCALE / 2.0, *colour);
            }
            Mark::Words { words, at, anchor, turned, size, colour } => {
                self.words(words, (scaled(*at), *anchor, *turned), *size, *colour);
            }
        }
    }

    /// Mixes some of a colour into a pixel, if it is one.
    fn mix(&mut self, x: i64, y: i64, colour: Colour, share: f64) {
        let inside = |at: i64, end: usize| usize::try_from(at).ok().filter(|at| *at < end);
        let (Some(x), Some(y)) = (inside(x, self.width), inside(y, self.height)) else { return };
        let at = (y * self.width + x) * 3;
        for (byte, colour) in self.bytes[at..at + 3].iter_mut().zip(colour.0) {
            let mixed = f64::from(*byte) * (1.0 - share) + f64::from(colour) * share;
            *byte = mixed.round() as u8;
        }
    }

    /// Pixels are covered as far as they are inside.
    fn rectangle(&mut self, from: Point, to: Point, colour: Colour) {
        let covered = |at: i64, low: f64, high: f64| {
            let at = at as f64;
            (high.min(at + 1.0) - low.max(at)).clamp(0.0, 1.0)
        };
        for y in self.rows(from.y, to.y) {
            for x in self.columns(from.x, to.x) {
                self.mix(x, y, colour, covered(x, from.x, to.x) * covered(y, from.y, to.y));
            }
        }
    }

    /// The rows between two heights, as far as there are rows.
    fn rows(&self, from: f64, to: f64) -> core::ops::Range<i64> {
        between(from, to, self.height)
    }

    fn columns(&self, from: f64, to: f64) -> core::ops::Range<i64> {
        between(from, to, self.width)
    }

    /// Pixels are covered by how near they are to any of the segments, each once.
    fn line(&mut self, segments: &[(Point, Point)], radius: f64, colour: Colour) {
        let mut shares = vec![0.0_f32; self.width * self.height];
        let reach = radius + 1.0;
        for (from, to) in segments {
            for y in self.rows(from.y.min(to.y) - reach, from.y.max(to.y) + reach) {
                for x in self.columns(from.x.min(to.x) - reach, from.x.max(to.x) + reach) {
                    let centre = Point { x: x as f64 + 0.5, y: y as f64 + 0.5 };
                    let share = (radius + 0.5 - distance(centre, *from, *to)).clamp(0.0, 1.0) as f32;
                    let slot = &mut shares[y as usize * self.width + x as usize];
                    *slot = slot.max(share);
                }
            }
        }
        for (at, share) in shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0) {
            self.mix((at % self.width) as i64, (at / self.width) as i64, colour, f64::from(share));
        }
    }

    /// Glyph by glyph, from left to right or upwards.
    fn words(
        &mut self,
        words: &str,
        (at, anchor, turned): (Point, Anchor, bool),
        size: Size,
        colour: Colour,
    ) {
        let before = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => 0.5,
            Anchor::End => 1.0,
        };
        let (x, y) = (at.x.round() as i64, at.y.round() as i64);
        let start = (size.width(words) * SCALE * -before).round() as i64;
        let middle = size.middle().round() as i64;
        for (place, glyph) in words.chars().filter_map(|letter| size.glyph(letter)).enumerate() {
            for (row, inks) in glyph.rows().enumerate() {
                for (column, ink) in inks.iter().enumerate().filter(|(_, ink)| **ink > 0) {
                    let along = start + (place * glyph.width() + column) as i64;
                    let across = row as i64 - middle;
                    let (x, y) = if turned { (x + across, y - along) } else { (x + along, y + across) };
                    self.mix(x, y, colour, f64::from(*ink) / 255.0);
                }
            }
        }
    }
}

fn between(from: f64, to: f64, end: usize) -> core::ops::Range<i64> {
    let inside = |at: f64| at.clamp(0.0, end as f64) as i64;
    inside(from.floor())..inside(to.ceil())
}

/// How far a point is from a segment.
fn distance(point: Point, from: Point, to: Point) -> f64 {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let square = dx * dx + dy * dy;
    let along = if square > 0.0 { ((point.x - from.x) * dx + (point.y - from.y) * dy) / square } else { 0.0 };
    let along = along.clamp(0.0, 1.0);
    (point.x - from.x - along * dx).hypot(point.y - from.y - along * dy)
}

/// The segments of a line that are drawn, in pixels of the PNG as the points are.
fn dashed(points: &[Point], dashes: Dashes) -> Vec<(Point, Point)> {
    let segments = points.windows(2).map(|pair| (pair[0], pair[1]));
    if dashes.is_empty() {
        return segments.collect();
    }
    let mut drawn = Vec::new();
    let mut lengths = dashes.iter().map(|length| length * SCALE).cycle();
    let (mut left, mut pen) = (lengths.next().unwrap_or(f64::INFINITY), true);
    for (from, to) in segments {
        let length = (to.x - from.x).hypot(to.y - from.y);
        let on = |at: f64| Point {
            x: from.x + (to.x - from.x) * at / length,
            y: from.y + (to.y - from.y) * at / length,
        };
        let mut at = 0.0;
        while at < length {
            let end = length.min(at + left);
            if pen {
                drawn.push((on(at), on(end)));
            }
            left -= end - at;
            at = end;
            // A dash that is over, but for what rounding leaves of it.
            if left < 1e-6 {
                (left, pen) = (lengths.next().unwrap_or(f64::INFINITY), !pen);
            }
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(marks: Vec<Mark>) -> Drawing {
        Drawing { width: 20.0, height: 20.0, title: String::new(), marks }
    }

    fn pixel(pixels: &Pixels, x: usize, y: usize) -> [u8; 3] {
        pixels.bytes[(y * pixels.width + x) * 3..][..3].try_into().unwrap()
    }

    fn inked(pixels: &Pixels) -> Vec<(usize, usize)> {
        let cells = (0..pixels.height).flat_map(|y| (0..pixels.width).map(move |x| (x, y)));
        cells.filter(|(x, y)| pixel(pixels, *x, *y) != [255; 3]).collect()
    }

    #[test]
    fn rectangles_cover_their_share_of_a_pixel() {
        let colour = Colour::BLACK;
        let mark = Mark::Rectangle { left: 2.0, top: 2.0, width: 3.0, height: 2.0, colour };
        let pixels = render(&drawing(vec![mark]));
        assert_eq!((pixels.width, pixels.height), (30, 30));
        // 3 to 7.5 by 3 to 6.
        assert_eq!(pixel(&pixels, 3, 3), [0; 3]);
        assert_eq!(pixel(&pixels, 7, 5), [128; 3]);
        assert_eq!(inked(&pixels).len(), 5 * 3);
    }

    #[test]
    fn lines_are_as_wide_as_they_should_be_and_nothing_is_drawn_outside() {
        let point = |x, y| Point { x, y };
        let line = |points, dashes| Mark::Line { points, width: 2.0, colour: Colour::BLACK, dashes };
        let pixels = render(&drawing(vec![line(vec![point(-5.0, 10.0), point(50.0, 10.0)], &[])]));
        assert_eq!(inked(&pixels).len(), 30 * 4, "three pixels, of which two by half");
        let gaps = render(&drawing(vec![line(vec![point(0.0, 10.0), point(20.0, 10.0)], &[1.0, 9.0])]));
        assert!((1..30 * 2).contains(&inked(&gaps).len()));
        let far = render(&drawing(vec![line(vec![point(-1e9, -1e9), point(-1e9, 1e9)], &[])]));
        assert!(inked(&far).is_empty());
    }

    #[test]
    fn turned_words_go_upwards() {
        let words = |turned, anchor| Mark::Words {
            words: "H".to_owned(),
            at: Point { x: 10.0, y: 10.0 },
            anchor,
            turned,
            size: Size::Small,
            colour: Colour::BLACK,
        };
        let inked = |turned, anchor| inked(&render(&drawing(vec![words(turned, anchor)])));
        let (flat, turned) = (inked(false, Anchor::Start), inked(true, Anchor::Start));
        assert!(flat.iter().all(|(x, _)| *x >= 15) && flat.iter().any(|(_, y)| *y < 15));
        assert!(turned.iter().all(|(_, y)| *y <= 15) && turned.iter().any(|(x, _)| *x < 15));
        assert_eq!(flat.len(), turned.len());
        assert!(inked(false, Anchor::End).iter().all(|(x, _)| *x < 15));
    }
}
