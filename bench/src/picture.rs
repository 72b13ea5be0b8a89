//! A line through some points, as SVG: for reading, in light and dark.

use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

pub(crate) struct Picture<'p> {
    pub(crate) title: &'p str,
    pub(crate) x: &'p str,
    pub(crate) y: &'p str,
    /// In their order: where on the x axis (any scale, it is stretched), what to call that place, and the figure.
    pub(crate) points: Vec<(f64, String, f64)>,
}

impl Picture<'_> {
    pub(crate) fn svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
             font-family=\"sans-serif\" font-size=\"12\" fill=\"#777\">\n<title>{title}</title>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"15\">{title}</text>\n",
            title = escaped(self.title)
        );
        let figures = || self.points.iter().map(|point| point.2);
        let top = round_up(figures().fold(0.0, f64::max));
        let (low, high) = (
            self.points.iter().map(|point| point.0).fold(f64::INFINITY, f64::min),
            self.points.iter().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max),
        );
        let across = |x: f64| {
            let share = if high > low { (x - low) / (high - low) } else { 0.5 };
            LEFT + share * (WIDTH - LEFT - RIGHT)
        };
        let up = |y: f64| HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM);
        for step in 0..=4 {
            let figure = top * f64::from(step) / 4.0;
            let y = up(figure);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#9995\"/>\n\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                short(figure)
            );
        }
        for (x, name, _) in &self.points {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                across(*x),
                HEIGHT - BOTTOM + 18.0,
                escaped(name)
            );
        }
        let line: Vec<String> =
            self.points.iter().map(|(x, _, y)| format!("{:.1},{:.1}", across(*x), up(*y))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#2a7de1\" stroke-width=\"2\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
             <text x=\"{LEFT}\" y=\"34\">{}</text>\n</svg>",
            line.join(" "),
            WIDTH - RIGHT,
            HEIGHT - 10.0,
            escaped(self.x),
            escaped(self.y)
        );
        svg
    }
}

/// The next of 1, 2, 5, 10, 20 …: where an axis ends.
fn round_up(figure: f64) -> f64 {
    if figure <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(figure.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|end| *end >= figure).unwrap_or(figure)
}

fn short(figure: f64) -> String {
    let text = format!("{figure:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_figure() {
        assert_eq!([0.0, 0.3, 1.0, 7.0, 13.0].map(round_up), [1.0, 0.5, 1.0, 10.0, 20.0]);
        assert_eq!([short(0.25), short(5.0), short(0.0)], ["0.25", "5", "0"]);
    }

    #[test]
    fn every_point_is_drawn_inside() {
        let points = vec![(4.0, "10k".to_owned(), 40.0), (7.0, "10M <".to_owned(), 35.0)];
        let svg = Picture { title: "rate", x: "stored", y: "% of E", points }.svg();
        assert!(svg.contains("10M &lt;"));
        assert!(svg.contains("70.0,") && svg.contains("700.0,"), "{svg}");
    }
}
