//! The published figures: one section a bench in [`DOCUMENT`], rewritten by program only.

use crate::record::row::Report;
use crate::record::table;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

/// The document with the figures.
pub(crate) const DOCUMENT: &str = "docs/internals/measurements.md";

/// Rewrites the section of a bench, or adds it at the end.
pub(crate) fn section(root: &Path, method: &str, report: &Report) -> Result<()> {
    let document = root.join(DOCUMENT);
    let text = fs::read_to_string(&document)
        .with_context(|| format!("cannot read {}", document.display()))?;
    let text = replaced(&text, &report.bench, &body(method, report))?;
    fs::write(&document, text).with_context(|| format!("cannot write {}", document.display()))?;
    println!("published in {}", document.display());
    Ok(())
}

fn body(method: &str, report: &Report) -> String {
    let provenance = &report.provenance;
    let machine = &provenance.machine;
    format!(
        "## {title}\n\n{method}\n\n{table}\n\
         {date}, commit {commit}, `{command}`. {cpu}, {cores} cores, {memory}, Linux {kernel}.\n",
        title = report.title,
        table = table::markdown(&report.cells),
        date = provenance.date,
        commit = commits(report),
        command = provenance.command,
        cpu = machine.cpu,
        cores = machine.cores,
        memory = machine.memory,
        kernel = machine.kernel,
    )
}

/// The commits at which the cells were measured: more than one if some were kept from earlier.
fn commits(report: &Report) -> String {
    let mut commits: Vec<&str> = report.cells.iter().map(|cell| cell.commit.as_str()).collect();
    commits.sort_unstable();
    commits.dedup();
    commits.join(" and ")
}

/// `text` with `body` between the two marks of `bench`.
fn replaced(text: &str, bench: &str, body: &str) -> Result<String> {
    let open = format!("<!-- bench:{bench} -->");
    let close = format!("<!-- /bench:{bench} -->");
    let section = format!("{open}\n{body}{close}");
    let Some((before, rest)) = text.split_once(&open) else {
        return Ok(format!("{}\n\n{section}\n", text.trim_end()));
    };
    let Some((_, after)) = rest.split_once(&close) else {
        bail!("{open} is not followed by {close}");
    };
    Ok(format!("{before}{section}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::provenance::Provenance;
    use crate::record::row::{Cell, CellResult};

    #[test]
    fn kept_cells_show_their_own_commit() {
        let cell = |commit| CellResult::new(&Cell::new("c"), Vec::new(), commit);
        let provenance = Provenance::collect(&xtask::workspace()).unwrap();
        let report = Report::new("b", "B", provenance, vec![cell("old"), cell("new"), cell("old")]);
        assert!(body("How.", &report).contains("commit new and old, `"));
    }

    #[test]
    fn only_the_section_changes() {
        let text = "# Head\n\n<!-- bench:a -->\nold\n<!-- /bench:a -->\n\nrest\n";
        let new = replaced(text, "a", "new\n").unwrap();
        assert_eq!(new, "# Head\n\n<!-- bench:a -->\nnew\n<!-- /bench:a -->\n\nrest\n");
        assert_eq!(replaced(&new, "a", "new\n").unwrap(), new);
    }

    #[test]
    fn a_new_section_goes_to_the_end() {
        let new = replaced("# Head\n", "b", "x\n").unwrap();
        assert_eq!(new, "# Head\n\n<!-- bench:b -->\nx\n<!-- /bench:b -->\n");
    }

    #[test]
    fn a_lost_mark_is_not_guessed() {
        assert!(replaced("<!-- bench:a -->\n", "a", "x\n").is_err());
    }
}
