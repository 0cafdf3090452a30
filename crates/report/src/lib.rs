//! `hikyaku report`: logs of runs (`--log-dir`) as one page.
//!
//! The page is one file of HTML with drawings of SVG. It has no script and loads nothing, and its policy forbids both. Names in
//! logs may have been chosen by others, so every text of a log is escaped (`escape.rs`).
#![forbid(unsafe_code)]

mod axis;
mod chart;
mod escape;
mod files;
mod limits;
mod page;
mod series;
#[cfg(test)]
mod tests;
mod view;

use anyhow::Result;
use clap::Args;
use hikyaku_console::{At, ExitCode, Tone, causes, print, say};
use hikyaku_fs::write_whole;
use hikyaku_run_log::{Run, logs_in, read};
use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};

/// Options of `hikyaku report`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// Directories or files that --log-dir of cp, perf and serve has written; several runs are compared
    #[arg(required = true, value_name = "DIR|FILE")]
    logs: Vec<PathBuf>,
    /// Write the page into this file; without this, or for '-', it goes to standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show the last COUNT runs
    #[arg(long, value_name = "COUNT", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    last: u32,
}

const EXAMPLES: &str = "\
Examples:
  hikyaku cp -r --log-dir logs lab:/run7 .
  hikyaku report logs -o report.html
      rates, losses, processors, memory and disks over time
  hikyaku report logs/A logs/B -o both.html  two runs beside each other
  hikyaku perf -c HOST --sweep 10%..110%:8 --log-dir logs
      a curve of measured against target rate

The page is one file without scripts, for any browser.";

/// Makes the page.
///
/// # Errors
///
/// There are no logs, none can be read, or the page cannot be written.
pub fn run(args: &ReportArgs) -> Result<()> {
    let is_terminal = args.output.is_none() && stdout().is_terminal();
    if is_terminal {
        let error = anyhow::anyhow!("the page is not for a terminal");
        return Err(error.context("try: -o report.html").context("no file for the page"));
    }
    let (runs, left_out) = runs(&args.logs, args.last as usize)?;
    let page = page::page(&runs, &left_out);
    match &args.output {
        Some(path) if path.as_os_str() != "-" => write(path, &page),
        Some(_) | None => print(page),
    }
}

/// The last runs of these directories and files, and what is left out.
fn runs(logs: &[PathBuf], most: usize) -> Result<(Vec<Run>, Vec<String>)> {
    let (mut runs, mut left_out, mut unread) = (Vec::new(), Vec::new(), Vec::new());
    for path in logs {
        let mut found = logs_in(path)?;
        if found.is_empty() {
            let text = format!("{} has no logs (*.jsonl)", path.display());
            return Err(ExitCode::WillFail.error(text));
        }
        // The names begin with the time.
        let older = found.len().saturating_sub(most);
        found.drain(..older);
        if older > 0 {
            left_out.push(format!("{older} older runs of {} are left out", path.display()));
        }
        for path in found {
            match read(&path) {
                Ok(run) => runs.push(run),
                Err(error) => unread.push(causes(&error.into())),
            }
        }
    }
    match unread.as_slice() {
        [only] if runs.is_empty() => return Err(ExitCode::WillFail.error(only)),
        _ => unread.iter().for_each(|said| say(Tone::Error, said)),
    }
    if runs.is_empty() {
        return Err(ExitCode::WillFail.error("no log can be read"));
    }
    left_out.extend(unread);
    Ok((runs, left_out))
}

/// Writes the file; no reader finds half a page.
fn write(path: &Path, page: &str) -> Result<()> {
    write_whole(path, page.as_bytes()).at(path.display())
}
