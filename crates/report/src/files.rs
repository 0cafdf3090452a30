//! Begins and ends of files, as bars over time.

use crate::axis::{Axis, Unit};
use crate::chart::{HEIGHT, class_of, frame, place_across, svg_head};
use crate::escape::{Text, shortened};
use hikyaku_run_log::{FileLine, FileStage, MachineId, Run};
use hikyaku_units::counted;
use std::collections::HashMap;
use std::fmt::Write;

/// A file of a run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct FileSpan {
    pub(crate) path: String,
    pub(crate) begin: f64,
    pub(crate) end: f64,
    pub(crate) bytes: Option<u64>,
    pub(crate) m: Option<MachineId>,
    pub(crate) outcome: Outcome,
}

/// The result of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Done,
    Failed,
    /// The log ends before the file does.
    Open,
}

/// Bars of a drawing. Of more files only the first are drawn.
const BARS_MAX: usize = 2000;
/// Bars with a name of their own.
const NAMED_MAX: usize = 300;
/// Files of the table.
const TABLE_MAX: usize = 200;
/// Characters of a name in the table.
const NAME_CHARS_MAX: usize = 80;
/// Pixels of the drawing.
const PIXELS: f64 = 240.0;

/// The files of a run in the order of their begins.
pub(crate) fn spans(run: &Run, end: f64) -> Vec<FileSpan> {
    let mut spans: Vec<FileSpan> = Vec::new();
    let mut open: HashMap<&str, usize> = HashMap::new();
    let span = |line: &FileLine, outcome| FileSpan {
        path: line.path.clone(),
        begin: line.t,
        end: line.t,
        bytes: line.bytes,
        m: line.m,
        outcome,
    };
    for line in &run.files {
        let outcome = match line.stage {
            FileStage::Begin => {
                open.entry(&line.path).or_insert_with(|| {
                    spans.push(FileSpan { end, ..span(line, Outcome::Open) });
                    spans.len() - 1
                });
                continue;
            }
            FileStage::End => Outcome::Done,
            FileStage::Failed => Outcome::Failed,
        };
        match open.remove(line.path.as_str()) {
            Some(at) => {
                let span = &mut spans[at];
                (span.end, span.outcome) = (line.t.max(span.begin), outcome);
            }
            None => spans.push(span(line, outcome)),
        }
    }
    spans.sort_by(|a, b| a.begin.total_cmp(&b.begin));
    spans
}

/// The drawing of the files, and a table of some of them; nothing without files.
pub(crate) fn html(run: &Run, spans: &[FileSpan], end: f64) -> String {
    if spans.is_empty() {
        return String::new();
    }
    let shown = &spans[..spans.len().min(BARS_MAX)];
    let axis = Axis::to(Unit::Seconds, end);
    let up = Axis { end: 1.0, unit: "", ticks: Vec::new() };
    let failed = spans.iter().filter(|span| span.outcome == Outcome::Failed).count();
    let untold = run.end.as_ref().map_or(0, |end| end.untold_files);
    let mut words = counted(spans.len(), "file").to_string();
    for (count, text) in [
        (failed as u64, "failed"),
        ((spans.len() - shown.len()) as u64, "are not drawn"),
        (untold, "begins and ends were not written"),
    ] {
        if count > 0 {
            let _ = write!(words, "; {count} {text}");
        }
    }
    let mut html = format!(
        "<figure class=\"chart\"><figcaption>Files <small>from begin to end, in the order of their begins; {words}</small></figcaption>"
    );
    html.push_str(&frame(&axis, &up, "time", &drawing(shown, &axis, &words)));
    html.push_str(&table(run, spans));
    html.push_str("</figure>\n");
    html
}

fn drawing(spans: &[FileSpan], axis: &Axis, words: &str) -> String {
    let row = HEIGHT / spans.len() as f64;
    let pixels = (PIXELS / spans.len() as f64 - 1.0).clamp(1.0, 12.0);
    let mut svg = svg_head("Files over time", words);
    let mut all: HashMap<String, String> = HashMap::new();
    for (number, span) in spans.iter().enumerate() {
        let (from, to) = (place_across(span.begin, axis), place_across(span.end, axis));
        let bar =
            format!("M{from:.1} {:.1}H{:.1}", (number as f64 + 0.5) * row, to.max(from + 1.0));
        let class = match span.outcome {
            Outcome::Failed => "failed".to_owned(),
            _ => class_of(span.m.map_or(0, |m| m.0 as usize)),
        };
        if spans.len() > NAMED_MAX {
            all.entry(class).or_default().push_str(&bar);
            continue;
        }
        let _ = write!(
            svg,
            "<path class=\"bar {class}\" style=\"stroke-width:{pixels:.1}px\" d=\"{bar}\"><title>{}: {} to {}</title></path>",
            Text(&span.path),
            Unit::Seconds.shown(span.begin),
            Unit::Seconds.shown(span.end)
        );
    }
    let mut all: Vec<(String, String)> = all.into_iter().collect();
    all.sort();
    for (class, bars) in all {
        let _ = write!(
            svg,
            "<path class=\"bar {class}\" style=\"stroke-width:{pixels:.1}px\" d=\"{bars}\"/>"
        );
    }
    svg.push_str("</svg>");
    svg
}

fn table(run: &Run, spans: &[FileSpan]) -> String {
    let first = match spans.len() > TABLE_MAX {
        true => format!(" (the first {TABLE_MAX})"),
        false => String::new(),
    };
    let mut html = format!(
        "<details><summary>Files{first}</summary><div class=\"scroll\"><table><tr><th>file</th><th>size</th><th>begin</th>\
         <th>end</th><th>rate</th><th>with</th><th></th></tr>"
    );
    for span in spans.iter().take(TABLE_MAX) {
        let seconds = span.end - span.begin;
        let size = span.bytes.map_or_else(String::new, |bytes| Unit::Bytes.shown(bytes as f64));
        let rate = match (span.bytes, span.outcome) {
            (Some(bytes), Outcome::Done) if seconds > 0.0 => {
                Unit::Rate.shown(bytes as f64 * 8.0 / seconds)
            }
            _ => String::new(),
        };
        let machine = run.machines.iter().find(|machine| Some(machine.m) == span.m);
        let outcome = match span.outcome {
            Outcome::Done => "",
            Outcome::Failed => "failed",
            Outcome::Open => "not ended",
        };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{size}</td><td>{}</td><td>{}</td><td>{rate}</td><td>{}</td><td>{outcome}</td></tr>",
            Text(&shortened(&span.path, NAME_CHARS_MAX)),
            Unit::Seconds.shown(span.begin),
            Unit::Seconds.shown(span.end),
            Text(machine.map_or("", |machine| &machine.name)),
        );
    }
    html.push_str("</table></div></details>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begins_and_ends_of_files_are_paired() {
        let line = |t, stage, path: &str| FileLine {
            t,
            stage,
            path: path.to_owned(),
            bytes: Some(1000),
            m: Some(MachineId(1)),
        };
        let files = vec![
            line(1.0, FileStage::Begin, "<b>a</b>"),
            line(2.0, FileStage::Begin, "b"),
            line(2.5, FileStage::Begin, "c"),
            line(3.0, FileStage::End, "<b>a</b>"),
            line(4.0, FileStage::Failed, "c"),
        ];
        let run = Run { files, ..Run::default() };
        let spans = spans(&run, 9.0);
        let told: Vec<_> = spans.iter().map(|span| (span.begin, span.end, span.outcome)).collect();
        let wanted =
            [(1.0, 3.0, Outcome::Done), (2.0, 9.0, Outcome::Open), (2.5, 4.0, Outcome::Failed)];
        assert_eq!(told, wanted);
        let html = html(&run, &spans, 9.0);
        assert!(!html.contains("<b>") && html.contains("3 files; 1 failed"), "{html}");
        assert_eq!(html.matches("class=\"bar").count(), 3);
    }
}
