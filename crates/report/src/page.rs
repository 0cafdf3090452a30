//! The page: its head, what all runs have in common, and each run.

use crate::axis::Unit;
use crate::chart::{Chart, Style};
use crate::escape::Text;
use crate::limits::{Cause, Part};
use crate::series::{Series, mean};
use crate::view::View;
use hikyaku_run_log::Run;
use hikyaku_units::counted;
use std::fmt::Write;

const CSS: &str = include_str!("page.css");

/// The page of these runs.
pub(crate) fn page(runs: &[Run], left_out: &[String]) -> String {
    let views: Vec<View<'_>> = runs.iter().map(View::of).collect();
    let title = match runs {
        [run] => run.begin.title.clone(),
        _ => counted(runs.len(), "run").to_string(),
    };
    // The page may load nothing and run nothing, whatever a log has.
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{} - hikyaku report</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n",
        Text(&title)
    );
    let _ = writeln!(html, "<h1>hikyaku report</h1>");
    for text in left_out {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", Text(text));
    }
    if views.len() > 1 {
        html.push_str(&comparison(&views));
    }
    for (number, view) in views.iter().enumerate() {
        html.push_str(&section(view, (views.len() > 1).then_some(number + 1)));
    }
    html.push_str("</body>\n</html>\n");
    html
}

/// All runs beside each other.
fn comparison(views: &[View<'_>]) -> String {
    let named =
        |number: usize, view: &View<'_>| format!("{}: {}", number + 1, view.run.begin.title);
    let series = views.iter().enumerate().map(|(number, view)| Series {
        name: named(number, view),
        look: number,
        points: view.total.clone(),
    });
    let chart = Chart {
        title: "Rate of each run",
        note: "",
        units: (Unit::Seconds, Unit::Rate),
        across: "time since its begin",
        series: series.collect(),
        end: Some(views.iter().map(|view| view.seconds).fold(0.0, f64::max)),
        top: None,
        style: Style::Lines,
    };
    let sweep = sweep(
        views
            .iter()
            .enumerate()
            .filter(|(_, view)| !view.run.points.is_empty())
            .map(|(number, view)| (number, named(number, view), view.run)),
    );
    let mut html = "<h2>Comparison</h2>\n<div class=\"scroll\"><table><tr><th>run</th><th>began</th><th>time</th>\
                    <th>bytes</th><th>mean rate</th><th>largest rate</th><th>lost</th><th>limited by</th></tr>"
        .to_owned();
    for (number, view) in views.iter().enumerate() {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", Text(&named(number, view)));
        let _ = write!(html, "<td>{}</td>", Text(&view.run.begin.began));
        for text in sums(view) {
            let _ = write!(html, "<td>{}</td>", Text(&text));
        }
        html.push_str("</tr>");
    }
    let _ = write!(html, "</table></div>\n<div class=\"charts\">\n{}{sweep}</div>\n", chart.html());
    html
}

/// Time, bytes, mean and largest rate, losses and the main limit of a run.
fn sums(view: &View<'_>) -> [String; 6] {
    let (bytes, seconds) = (view.bytes(), view.seconds);
    let rate = |bits: f64| if bits > 0.0 { Unit::Rate.shown(bits) } else { "-".to_owned() };
    let lost = view.losses().map(|(lost, sent)| format!("{:.3} %", 100.0 * lost / sent));
    let main = view.limits.first().map(|part| cause(view, &part.cause));
    [
        Unit::Seconds.shown(seconds),
        Unit::Bytes.shown(bytes),
        rate(if seconds > 0.0 { bytes * 8.0 / seconds } else { 0.0 }),
        rate(view.total.iter().map(|point| point.1).fold(0.0, f64::max)),
        lost.unwrap_or_else(|| "-".to_owned()),
        main.unwrap_or_else(|| "-".to_owned()),
    ]
}

fn section(view: &View<'_>, number: Option<usize>) -> String {
    let begin = &view.run.begin;
    let number = number.map_or_else(String::new, |number| format!("{number}: "));
    let mut html = format!("<h2>{number}{}</h2>\n<p class=\"soft\">", Text(&begin.title));
    let machine = view.run.machines.first().map_or("", |machine| &machine.name);
    let _ = write!(
        html,
        "{} on {}, hikyaku {}; ",
        Text(&begin.began),
        Text(machine),
        Text(&begin.program)
    );
    let ended = match &view.run.end {
        Some(end) => format!("exit code {}", end.exit_code),
        None => "the log has no end: the program runs or was killed".to_owned(),
    };
    let skipped = match view.run.skipped {
        0 => String::new(),
        count => format!("; {} of the log not understood", counted(count, "line")),
    };
    let _ = writeln!(html, "{ended}{skipped}</p>");
    let [time, bytes, rate, largest, lost, _] = sums(view);
    let files = view.run.end.as_ref().and_then(|end| end.files);
    let files = files.map_or_else(String::new, |files| format!("{}, ", counted(files, "file")));
    if view.bytes() > 0.0 {
        let _ = writeln!(
            html,
            "<p>{files}{bytes} in {time}: <strong>{rate}</strong>, at most {largest}; packets lost: {lost}</p>"
        );
    }
    html.push_str(&limits(view));
    html.push_str("<div class=\"charts\">\n");
    if !view.run.points.is_empty() {
        html.push_str(&sweep([(0, "measured".to_owned(), view.run)].into_iter()));
    }
    html.push_str(&view.charts());
    html.push_str("</div>\n");
    html.push_str(&machines(view));
    html
}

fn limits(view: &View<'_>) -> String {
    if view.limits.is_empty() {
        return String::new();
    }
    let total: f64 = view.limits.iter().map(|part| part.seconds).sum();
    let mut html = "<div class=\"scroll\"><table><tr><th>limited by</th><th>share of the time</th><th>time</th>\
                    <th>bytes</th><th>rate</th></tr>"
        .to_owned();
    for part in &view.limits {
        let Part { cause: of, seconds, bytes } = part;
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{:.0} %</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            Text(&cause(view, of)),
            100.0 * seconds / total.max(0.001),
            Unit::Seconds.shown(*seconds),
            Unit::Bytes.shown(*bytes),
            Unit::Rate.shown(bytes * 8.0 / seconds.max(0.001)),
        );
    }
    html.push_str("</table></div>\n");
    html
}

fn cause(view: &View<'_>, cause: &Cause) -> String {
    match cause {
        Cause::Said(word) => match word.as_str() {
            "starting" => "the start: the rate control measures the path".to_owned(),
            "link" => "the network path".to_owned(),
            "source" => "reading at the sender".to_owned(),
            "target" => "writing at the receiver".to_owned(),
            "processor" => "a thread of hikyaku that was busy all the time".to_owned(),
            "limit" => "the limit that the user set".to_owned(),
            other => other.to_owned(),
        },
        Cause::Path => "the network path".to_owned(),
        Cause::Processors(m) => format!("the processors of {}", view.name(*m)),
        Cause::Memory(m) => format!("the memory of {}", view.name(*m)),
        Cause::Disk(m) => format!("the disk of {}", view.name(*m)),
        Cause::Start => "the start: ssh logged in, and connections were made".to_owned(),
        Cause::Still => "nothing moved".to_owned(),
        Cause::Unknown => "nothing that was sampled was full".to_owned(),
    }
}

/// The machines with the means of their samples.
fn machines(view: &View<'_>) -> String {
    if view.run.loads.is_empty() {
        return String::new();
    }
    let mut html = "<details><summary>Machines</summary><div class=\"scroll\"><table><tr><th>machine</th><th>processors</th>\
                    <th>load</th><th>processors used</th><th>memory</th><th>free disk</th></tr>"
        .to_owned();
    for machine in &view.run.machines {
        let loads = || view.run.loads.iter().filter(|load| load.m == machine.m);
        let Some(last) = loads().next_back() else { continue };
        let points = |of: fn(&hikyaku_run_log::Load) -> Option<f64>| {
            mean(&loads().filter_map(|load| Some((load.t, of(load)?))).collect::<Vec<_>>())
        };
        let number = |value: Option<f64>, decimals: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
        };
        let bytes = |value: Option<u64>| {
            value.map_or_else(|| "-".to_owned(), |value| Unit::Bytes.shown(value as f64))
        };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{} %</td><td>{} of {}</td><td>{} of {}</td></tr>",
            Text(&machine.name),
            number(last.processors.map(f64::from), 0),
            number(points(|load| load.load), 2),
            number(points(|load| load.cpu_percent), 0),
            bytes(last.memory_used_bytes),
            bytes(last.memory_total_bytes),
            bytes(last.disk_free_bytes),
            bytes(last.disk_total_bytes),
        );
    }
    html.push_str("</table></div></details>\n");
    html
}

/// The dotted line of the targets themselves.
const TARGET_LOOK: usize = 20;

/// The curve of measured against target rate, one for each run.
fn sweep<'a>(runs: impl Iterator<Item = (usize, String, &'a Run)>) -> String {
    let mut series: Vec<Series> = runs
        .map(|(look, name, run)| {
            let points = run.points.iter();
            let points =
                points.map(|point| (point.target_bits_per_second, point.received_bits_per_second));
            let mut points: Vec<(f64, f64)> =
                points.filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Series { name, look, points }
        })
        .collect();
    let most = series.iter().flat_map(|series| &series.points).map(|point| point.0);
    let most = most.fold(0.0, f64::max);
    if most == 0.0 {
        return String::new();
    }
    let (name, look) = ("target".to_owned(), TARGET_LOOK);
    series.push(Series { name, look, points: vec![(0.0, 0.0), (most, most)] });
    Chart {
        title: "Measured rate against target rate",
        note: "",
        units: (Unit::Rate, Unit::Rate),
        across: "target",
        series,
        end: Some(most),
        top: None,
        style: Style::Marks,
    }
    .html()
}
