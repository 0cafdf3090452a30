//! Goodput and number of connections over time as a picture (SVG): runs whose number is tuned in colour, fixed numbers in grey.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;

/// Seconds over which a point of the curve is the mean.
const WINDOW_SECONDS: f64 = 1.5;
/// Seconds over which goodput has to reach a goal.
const REACHED_SECONDS: f64 = 5.0;
/// Size of the picture and of each of its two parts, in pixels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// Where the paper's figures 5 and 6 come to rest: 900 Mbit/s and 32 connections after about 40 s.
const PAPER: (f64, f64, f64) = (40.0, 900.0, 32.0);

/// Goodput of one run over time, and its connections.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Series {
    /// "tuned", "published", or the fixed number.
    name: String,
    /// Seconds since the start, and bytes so far.
    bytes: Vec<(f64, f64)>,
    /// Seconds since the start, and the connections of the measurement that ended then.
    connections: Vec<(f64, f64)>,
}

impl Series {
    /// From the events of `hikyaku guc --json-lines`. Chunks of a number that changes meanwhile are those of single channels.
    pub(crate) fn of_events(name: &str, events: &str) -> Self {
        let (mut bytes, mut epochs, mut chunks) = (vec![], vec![], vec![]);
        for event in events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let point = |of: &str| Some((event["seconds"].as_f64()?, event[of].as_f64()?));
            match event["event"].as_str() {
                Some("progress") => bytes.extend(point("bytes")),
                Some("epoch") => epochs.extend(point("connections")),
                Some("chunk") => chunks.extend(point("connections")),
                _ => {}
            }
        }
        let connections = if epochs.is_empty() { chunks } else { epochs };
        Self { name: name.to_owned(), bytes, connections }
    }

    /// Mean goodput from `from` to the end in Mbit/s.
    fn since(&self, from: f64) -> f64 {
        let first = self.bytes.iter().find(|point| point.0 >= from);
        match (first, self.bytes.last()) {
            (Some(first), Some(last)) if last.0 > first.0 => {
                (last.1 - first.1) * 8e-6 / (last.0 - first.0)
            }
            _ => f64::NAN,
        }
    }

    /// Mean goodput of the whole run.
    pub(crate) fn all(&self) -> f64 {
        self.since(0.0)
    }

    /// The middle of the run, in seconds since its start.
    fn middle(&self) -> f64 {
        self.bytes.last().map_or(0.0, |last| last.0 / 2.0)
    }

    /// Mean goodput of the second half of the run.
    pub(crate) fn late(&self) -> f64 {
        self.since(self.middle())
    }

    /// The median number of connections of the second half of the run.
    pub(crate) fn late_number(&self) -> f64 {
        let late = self.connections.iter().filter(|(at, _)| *at >= self.middle());
        let mut numbers: Vec<f64> = late.map(|(_, n)| *n).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// When goodput was this for the first time, in Mbit/s over some seconds.
    pub(crate) fn reached(&self, mbit: f64) -> Option<f64> {
        let curve = self.curve(REACHED_SECONDS);
        curve.into_iter().find(|point| point.1 >= mbit).map(|point| point.0)
    }

    /// Goodput over time in Mbit/s, each point the mean of the seconds before it.
    fn curve(&self, seconds: f64) -> Vec<(f64, f64)> {
        let rate = |(at, point): (usize, &(f64, f64))| {
            let before = self.bytes[..at].iter().rfind(|p| point.0 - p.0 >= seconds)?;
            Some((point.0, (point.1 - before.1) * 8e-6 / (point.0 - before.0)))
        };
        self.bytes.iter().enumerate().filter_map(rate).collect()
    }

    /// Its colour, and the width of its line.
    fn look(&self) -> (&'static str, f64) {
        match self.name.as_str() {
            "tuned" => ("#c0392b", 2.5),
            "published" => ("#2c6fbb", 2.0),
            _ => ("#888", 1.2),
        }
    }
}

/// One of the two parts of the picture.
struct Panel {
    title: &'static str,
    /// Its place below the upper edge.
    top: f64,
    /// The largest value, and the distance of two lines of the grid.
    most: f64,
    step: f64,
    /// Seconds of the longest run.
    seconds: f64,
}

impl Panel {
    fn x(&self, at: f64) -> f64 {
        LEFT + at / self.seconds * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        self.top + HEIGHT - BOTTOM - value.min(self.most) / self.most * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&self, svg: &mut String) {
        let (title, above) = (self.title, self.top + 22.0);
        let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{above}\" font-size=\"15\">{title}</text>");
        let mut value = 0.0;
        while value <= self.most {
            let (at, right, left) = (self.y(value), WIDTH - RIGHT, LEFT - 8.0);
            let _ = writeln!(svg, "<path d=\"M{LEFT} {at:.1}H{right:.1}\" stroke=\"#ddd\"/>");
            let below = at + 4.0;
            let _ = writeln!(
                svg,
                "<text x=\"{left:.1}\" y=\"{below:.1}\" text-anchor=\"end\">{value}</text>"
            );
            value += self.step;
        }
        for second in (0..=self.seconds as u32).step_by(10) {
            let (at, below) = (self.x(f64::from(second)), self.top + HEIGHT - BOTTOM + 20.0);
            let _ = writeln!(
                svg,
                "<text x=\"{at:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{second}</text>"
            );
        }
    }

    fn curve(&self, svg: &mut String, series: &Series, points: &[(f64, f64)]) {
        let (colour, width) = series.look();
        let mut path = String::new();
        for (at, &(second, value)) in points.iter().enumerate() {
            let command = if at == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", self.x(second), self.y(value));
        }
        let _ = writeln!(
            svg,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        );
        if let Some(&(second, value)) = points.last() {
            let (right, beside, name) = (self.x(second) + 6.0, self.y(value) + 4.0, &series.name);
            let _ = writeln!(
                svg,
                "<text x=\"{right:.1}\" y=\"{beside:.1}\" fill=\"{colour}\">{name}</text>"
            );
        }
    }

    fn mark(&self, svg: &mut String, (second, value): (f64, f64)) {
        let (x, y) = (self.x(second), self.y(value));
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"#222\"/>");
        let (right, above) = (x + 8.0, y - 8.0);
        let _ = writeln!(svg, "<text x=\"{right:.1}\" y=\"{above:.1}\">paper</text>");
    }
}

/// All curves as one picture, with the points of the paper or without.
pub(crate) fn draw(all: &[Series], has_paper: bool) -> String {
    let points = all.iter().flat_map(|series| &series.bytes);
    let seconds = points.map(|point| point.0).fold(10.0, f64::max);
    let goodput = Panel {
        title: "Goodput in Mbit/s over seconds",
        top: 0.0,
        most: 1000.0,
        step: 200.0,
        seconds,
    };
    let number =
        Panel { title: "Connections over seconds", top: HEIGHT, most: 80.0, step: 16.0, seconds };
    let height = 2.0 * HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    goodput.axes(&mut svg);
    number.axes(&mut svg);
    for series in all {
        goodput.curve(&mut svg, series, &series.curve(WINDOW_SECONDS));
        number.curve(&mut svg, series, &series.connections);
    }
    if has_paper {
        goodput.mark(&mut svg, (PAPER.0, PAPER.1));
        number.mark(&mut svg, (PAPER.0, PAPER.2));
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_and_number_follow_from_the_events() {
        let progress = |s: u32| {
            format!("{{\"event\":\"progress\",\"seconds\":{s},\"bytes\":{}}}", s * 1_250_000)
        };
        let mut events: Vec<String> = (0..=20).map(progress).collect();
        let number = |event: &str, s: u32, n: u32| {
            format!("{{\"event\":\"{event}\",\"seconds\":{s},\"connections\":{n}}}")
        };
        events.push(number("chunk", 3, 4));
        let series = Series::of_events("published", &events.join("\n"));
        assert!((series.all() - 10.0).abs() < 1e-9 && (series.late() - 10.0).abs() < 1e-9);
        assert_eq!(series.connections, [(3.0, 4.0)]);
        assert_eq!([series.reached(9.9), series.reached(11.0)], [Some(5.0), None]);
        assert!(series.curve(1.5).iter().all(|point| (point.1 - 10.0).abs() < 1e-9));
        events.extend([(4, 16), (12, 32), (14, 24), (16, 40)].map(|(s, n)| number("epoch", s, n)));
        let tuned = Series::of_events("tuned", &events.join("\n"));
        assert_eq!((tuned.connections.len(), tuned.late_number()), (4, 32.0));
        let picture = draw(&[series, tuned], true);
        assert!([">tuned<", ">published<", ">paper<"].iter().all(|text| picture.contains(text)));
        assert!(!draw(&[], false).contains(">paper<"));
    }
}
