//! Goodput over time as a picture (SVG): the tuned run in colour, fixed numbers in grey.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write;

/// Seconds over which a point of the curve is the mean.
const WINDOW_SECONDS: f64 = 1.5;
/// Size of the picture and its margins, in pixels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 80.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// Goodput of one run over time, and its connections.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Series {
    /// "tuned", or the fixed number.
    name: String,
    /// Seconds since the start, and bytes so far.
    bytes: Vec<(f64, f64)>,
    /// Seconds since the start, and the connections of the chunk that ended then.
    connections: Vec<(f64, f64)>,
}

impl Series {
    /// From the events of `hikyaku guc --json-lines`.
    pub(crate) fn of_events(name: &str, events: &str) -> Self {
        let mut series = Self { name: name.to_owned(), bytes: vec![], connections: vec![] };
        for event in events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let point = |of: &str| Some((event["seconds"].as_f64()?, event[of].as_f64()?));
            match event["event"].as_str() {
                Some("progress") => series.bytes.extend(point("bytes")),
                Some("chunk") => series.connections.extend(point("connections")),
                _ => {}
            }
        }
        series
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

    /// Mean goodput of the second half of the run.
    pub(crate) fn late(&self) -> f64 {
        self.since(self.bytes.last().map_or(0.0, |last| last.0 / 2.0))
    }

    /// Goodput over time in Mbit/s.
    fn curve(&self) -> Vec<(f64, f64)> {
        let rate = |(at, point): (usize, &(f64, f64))| {
            let before = self.bytes[..at].iter().rfind(|p| point.0 - p.0 >= WINDOW_SECONDS)?;
            Some((point.0, (point.1 - before.1) * 8e-6 / (point.0 - before.0)))
        };
        self.bytes.iter().enumerate().filter_map(rate).collect()
    }
}

/// All curves as one picture.
pub(crate) fn draw(all: &[Series]) -> String {
    let points = || all.iter().flat_map(|series| &series.bytes);
    let seconds = points().map(|point| point.0).fold(10.0, f64::max);
    let x = |at: f64| LEFT + at / seconds * (WIDTH - LEFT - RIGHT);
    let y = |mbit: f64| HEIGHT - BOTTOM - mbit / 1000.0 * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">Goodput in Mbit/s over seconds: tuned, and fixed numbers of \
         connections</text>\n"
    );
    let mut line = |text: String| {
        svg.push_str(&text);
        svg.push('\n');
    };
    for mbit in (0..=1000).step_by(200) {
        let at = y(f64::from(mbit));
        line(format!("<path d=\"M{LEFT} {at:.1}H{:.1}\" stroke=\"#ddd\"/>", WIDTH - RIGHT));
        line(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{mbit}</text>",
            LEFT - 8.0,
            at + 4.0
        ));
    }
    for second in (0..=seconds as u32).step_by(10) {
        let (at, below) = (x(f64::from(second)), HEIGHT - BOTTOM + 20.0);
        line(format!(
            "<text x=\"{at:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{second}</text>"
        ));
    }
    for series in all {
        let is_tuned = series.name == "tuned";
        let (colour, width) = if is_tuned { ("#c0392b", 2.5) } else { ("#888", 1.2) };
        let curve = series.curve();
        let mut path = String::new();
        for (at, &(second, mbit)) in curve.iter().enumerate() {
            let command = if at == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", x(second), y(mbit));
        }
        line(format!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        ));
        if let Some(&(second, mbit)) = curve.last() {
            let name = &series.name;
            let (right, beside) = (x(second) + 6.0, y(mbit) + 4.0);
            line(format!(
                "<text x=\"{right:.1}\" y=\"{beside:.1}\" fill=\"{colour}\">{name}</text>"
            ));
        }
        if is_tuned {
            // The number of connections stands above the curve where it changes.
            let mut last = 0.0;
            for &(second, n) in series.connections.iter().filter(|(second, _)| *second <= seconds) {
                if n != last {
                    let (at, above) = (x(second), TOP + 8.0);
                    line(format!(
                        "<text x=\"{at:.1}\" y=\"{above:.1}\" fill=\"{colour}\" text-anchor=\"end\">{n}</text>"
                    ));
                    last = n;
                }
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_follows_from_the_events() {
        let progress = |s: u32| {
            format!("{{\"event\":\"progress\",\"seconds\":{s},\"bytes\":{}}}", s * 1_250_000)
        };
        let mut events: Vec<String> = (0..=20).map(progress).collect();
        events.push("{\"event\":\"chunk\",\"seconds\":3,\"connections\":4}".to_owned());
        let series = Series::of_events("tuned", &events.join("\n"));
        assert!((series.all() - 10.0).abs() < 1e-9 && (series.late() - 10.0).abs() < 1e-9);
        assert_eq!(series.connections, [(3.0, 4.0)]);
        assert!(series.curve().iter().all(|point| (point.1 - 10.0).abs() < 1e-9));
        let picture = draw(&[series]);
        assert!(picture.contains(">tuned</text>") && picture.contains(">4</text>"));
    }
}
