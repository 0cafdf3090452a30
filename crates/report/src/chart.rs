//! Charts: lines of SVG, with labels of HTML around them.
//!
//! The drawing is stretched to the room that it has. Its lines keep their width, and the labels are not part of it, so
//! that they can be read on a small screen as well.

use crate::axis::{Axis, Unit};
use crate::escape::Text;
use crate::series::{Series, decimated, mean};
use std::fmt::Write;

/// A chart of lines.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    /// An explanation for the reader.
    pub(crate) note: &'a str,
    /// The units of both axes.
    pub(crate) units: (Unit, Unit),
    /// The name of the axis from left to right.
    pub(crate) across: &'a str,
    pub(crate) series: Vec<Series>,
    /// The end of the axis from left to right; `None` for that of the last point.
    pub(crate) end: Option<f64>,
    /// The end of the axis upwards; `None` for that of the largest value.
    pub(crate) top: Option<f64>,
    pub(crate) style: Style,
}

/// The drawing at the points.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Style {
    #[default]
    Lines,
    /// The area below the only line is filled.
    Area,
    /// Each point has a mark.
    Marks,
}

/// The drawing has this many units in each direction.
pub(crate) const WIDTH: f64 = 1000.0;
pub(crate) const HEIGHT: f64 = 300.0;
/// Points of a chart, and of one line of it.
const POINTS_MAX: usize = 4000;
const LINE_POINTS_MAX: usize = 800;
/// Colours and dashes of lines.
const COLOURS: usize = 8;
const DASHES: usize = 3;

impl Chart<'_> {
    /// The markup of the chart; nothing if it has no points.
    pub(crate) fn html(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        if points().next().is_none() {
            return String::new();
        }
        let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(0.0, f64::max);
        let across = Axis::to(self.units.0, self.end.unwrap_or_else(|| most(|point| point.0)));
        let up = Axis::to_tick(self.units.1, self.top.unwrap_or_else(|| most(|point| point.1)));
        let mut html = String::new();
        // Writing to a text cannot fail.
        let _ = write!(
            html,
            "<figure class=\"chart\"><figcaption>{} <small>{}</small></figcaption>",
            Text(self.title),
            Text(up.unit)
        );
        html.push_str(&frame(&across, &up, self.across, &self.drawing(&across, &up)));
        html.push_str(&self.legend());
        if !self.note.is_empty() {
            let _ = write!(html, "<p class=\"note\">{}</p>", Text(self.note));
        }
        html.push_str(&self.figures());
        html.push_str("</figure>\n");
        html
    }

    fn drawing(&self, across: &Axis, up: &Axis) -> String {
        let (x, y) = (|value: f64| place_across(value, across), |value: f64| place_up(value, up));
        let mut svg = svg_head(self.title, &self.summary());
        let mut grid = String::new();
        for (value, _) in &up.ticks {
            let _ = write!(grid, "M0 {:.1}H{WIDTH}", y(*value));
        }
        let _ = write!(svg, "<path class=\"grid\" d=\"{grid}\"/>");
        let each = (POINTS_MAX / self.series.len().max(1)).clamp(50, LINE_POINTS_MAX);
        for series in &self.series {
            let points = decimated(&series.points, each);
            let mut line = String::new();
            for (at, (t, value)) in points.iter().enumerate() {
                let letter = if at == 0 { 'M' } else { 'L' };
                let _ = write!(line, "{letter}{:.1} {:.1}", x(*t), y(*value));
            }
            let title = Text(&series.name);
            if let (Style::Area, Some(first), Some(last)) =
                (self.style, points.first(), points.last())
            {
                let (from, to) = (x(first.0), x(last.0));
                let _ = write!(
                    svg,
                    "<path class=\"area\" d=\"{line}L{to:.1} {HEIGHT}L{from:.1} {HEIGHT}Z\"/>"
                );
            }
            let class = class_of(series.look);
            let _ = write!(
                svg,
                "<path class=\"line {class}\" d=\"{line}\"><title>{title}</title></path>"
            );
            if self.style == Style::Marks {
                let mut marks = String::new();
                for (t, value) in &points {
                    let _ = write!(marks, "M{:.1} {:.1}h0", x(*t), y(*value));
                }
                let _ = write!(svg, "<path class=\"mark {class}\" d=\"{marks}\"/>");
            }
        }
        svg.push_str("</svg>");
        svg
    }

    /// A sentence for who cannot see the drawing.
    fn summary(&self) -> String {
        let told = self.series.iter().take(COLOURS).filter_map(|series| {
            let mean = mean(&series.points)?;
            Some(format!("{}: mean {}", series.name, self.units.1.shown(mean)))
        });
        told.collect::<Vec<_>>().join("; ")
    }

    fn legend(&self) -> String {
        if self.series.len() < 2 {
            return String::new();
        }
        let mut html = "<ul class=\"legend\">".to_owned();
        for series in &self.series {
            let _ = write!(
                html,
                "<li><svg viewBox=\"0 0 28 8\" aria-hidden=\"true\"><path class=\"line {}\" d=\"M0 4H28\"/></svg>{}</li>",
                class_of(series.look),
                Text(&series.name)
            );
        }
        html.push_str("</ul>");
        html
    }

    /// The figures of the lines, for who cannot see the drawing or wants numbers.
    fn figures(&self) -> String {
        let mut html =
            "<details><summary>Figures</summary><div class=\"scroll\"><table><tr><th></th>\
                        <th>least</th><th>mean</th><th>largest</th><th>last</th></tr>"
                .to_owned();
        for series in &self.series {
            let Some(mean) = mean(&series.points) else { continue };
            let values = || series.points.iter().map(|point| point.1);
            let last = values().next_back().unwrap_or_default();
            let (least, most) =
                (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
            let _ = write!(html, "<tr><th scope=\"row\">{}</th>", Text(&series.name));
            for value in [least, mean, most, last] {
                let _ = write!(html, "<td>{}</td>", self.units.1.shown(value));
            }
            html.push_str("</tr>");
        }
        html.push_str("</table></div></details>");
        html
    }
}

/// The begin of a drawing.
pub(crate) fn svg_head(title: &str, description: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\"><title>{}</title><desc>{}</desc>",
        Text(title),
        Text(description)
    )
}

/// A drawing with labels at both axes.
pub(crate) fn frame(across: &Axis, up: &Axis, name: &str, drawing: &str) -> String {
    let mut html = "<div class=\"plot\"><div class=\"up\" aria-hidden=\"true\">".to_owned();
    for (value, label) in &up.ticks {
        let _ = write!(
            html,
            "<span style=\"top:{:.2}%\">{label}</span>",
            100.0 * place_up(*value, up) / HEIGHT
        );
    }
    let _ = write!(html, "</div>{drawing}<span></span><div class=\"across\" aria-hidden=\"true\">");
    for (value, label) in &across.ticks {
        let _ = write!(
            html,
            "<span style=\"left:{:.2}%\">{label}</span>",
            100.0 * place_across(*value, across) / WIDTH
        );
    }
    let _ = write!(html, "<em>{} ({})</em></div></div>", Text(name), across.unit);
    html
}

pub(crate) fn place_across(value: f64, axis: &Axis) -> f64 {
    (value / axis.end).clamp(0.0, 1.0) * WIDTH
}

fn place_up(value: f64, axis: &Axis) -> f64 {
    HEIGHT - (value / axis.end).clamp(0.0, 1.0) * HEIGHT
}

/// The colour and the dashes of a line.
pub(crate) fn class_of(number: usize) -> String {
    format!("c{} d{}", number % COLOURS, number / COLOURS % DASHES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_its_lines_and_no_markup_of_names() {
        let series = |name: &str| Series {
            name: name.to_owned(),
            look: 0,
            points: vec![(0.0, 0.0), (5.0, 8e6), (10.0, f64::MAX)],
        };
        let mut chart = Chart {
            title: "Rate",
            note: "",
            units: (Unit::Seconds, Unit::Rate),
            across: "time",
            series: vec![series("a"), series("<img src=x onerror=alert(1)>")],
            end: None,
            top: Some(1e7),
            style: Style::Lines,
        };
        let html = chart.html();
        assert_eq!(html.matches("<path class=\"line").count(), 4, "two lines, two in the legend");
        assert!(html.contains("d=\"M0.0 300.0L500.0 60.0L1000.0 0.0\""), "{html}");
        assert!(!html.contains("<img") && html.contains("&lt;img"), "{html}");
        chart.series = vec![Series::default()];
        assert_eq!(chart.html(), "");
    }
}
