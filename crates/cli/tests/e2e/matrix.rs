//! Every option of the commands that move files, on every way that their data may go: it is honoured, refused, or noted in
//! one line. The options are those of the commands' own tables.

mod cp;
mod get;
mod guc;

use clap::{Args, Command};
use hikyaku_console::{Class, Effect, Row, Table, Way};
use std::path::PathBuf;
use std::process::Output;

#[test]
fn every_option_of_a_command_that_moves_files_has_a_row() {
    let tables = [
        (hikyaku_copy::TABLE, hikyaku_copy::CopyArgs::augment_args(Command::new("cp"))),
        (hikyaku_web_get::TABLE, hikyaku_web_get::GetArgs::augment_args(Command::new("get"))),
        (hikyaku_guc::TABLE, hikyaku_guc::GucArgs::augment_args(Command::new("guc"))),
    ];
    for (table, command) in tables {
        assert_eq!(table.lacks(&command), Vec::<String>::new(), "{}", command.get_name());
    }
}

fn words(options: &[&str]) -> Vec<String> {
    options.iter().map(|word| (*word).to_owned()).collect()
}

/// A command, and ends for all its ways.
trait Ends {
    /// What it says of its options.
    fn table(&self) -> &Table;

    /// Makes the sources, and removes what runs have made.
    fn fill(&self);

    /// What runs of this test have made.
    fn made(&self) -> Vec<PathBuf>;

    /// A value that an option takes; empty if it has none.
    fn value(&self, row: &Row) -> &'static str;

    /// Options that an option requires.
    fn required(&self, row: &Row) -> &'static [&'static str];

    /// Whether an option is tried on a way.
    fn is_run(&self, row: &Row, way: Way) -> bool;

    /// Whether the other end of a way is there, so that a run succeeds.
    fn has_end(&self, way: Way) -> bool;

    /// Runs the command on a way with these options and nothing else; also what it says on standard error.
    fn run(&self, way: Way, options: &[String]) -> (Output, String);

    /// An option as it is typed, with its value and with what it requires.
    fn typed(&self, row: &Row) -> Vec<String> {
        let own = [row.flag, self.value(row)].into_iter().filter(|word| !word.is_empty());
        self.required(row).iter().copied().chain(own).map(str::to_owned).collect()
    }
}

/// The rows of a class that have no effect on a way.
fn idle(ends: &dyn Ends, way: Way, is_of: impl Fn(Class) -> bool) -> Vec<Row> {
    let (table, rows) = (ends.table(), ends.table().rows.iter().copied());
    rows.filter(|row| is_of(row.class) && ends.is_run(row, way))
        .filter(|row| matches!(table.effect(row, way, &[]), Effect::Refused | Effect::Nothing))
        .collect()
}

/// Each option that protects something and cannot be had ends the command, by name, before anything is written.
fn refused(ends: &dyn Ends) {
    let table = ends.table();
    for way in table.ways.iter().copied() {
        for row in idle(ends, way, |class| class == Class::Protects) {
            ends.fill();
            let (output, said) = ends.run(way, &ends.typed(&row));
            assert_eq!(output.status.code(), Some(1), "{} {way:?}: {said}", row.flag);
            let others = ends.required(&row).iter().any(|flag| said.contains(*flag));
            let is_named = said.contains(&table.refusal(&row, way)) || others;
            assert!(is_named && said.contains("\ntry: "), "{} {way:?}: {said}", row.flag);
            assert_eq!(ends.made(), Vec::<PathBuf>::new(), "{} {way:?}: {said}", row.flag);
        }
    }
}

/// All other options without effect are noted in one line each, but for a command that is to be quiet (`-q`).
fn noted(ends: &dyn Ends) {
    let table = ends.table();
    for way in table.ways.iter().copied() {
        let idle = idle(ends, way, |class| class != Class::Protects);
        let options: Vec<String> = idle.iter().flat_map(|row| ends.typed(row)).collect();
        ends.fill();
        let (output, said) = ends.run(way, &options);
        for row in &idle {
            let note = format!("hikyaku: {}\n", table.note(row, way));
            assert_eq!(said.matches(&note).count(), 1, "{way:?} {note}: {said}");
        }
        if ends.has_end(way) {
            assert_eq!(output.status.code(), Some(0), "{way:?}: {said}");
        }
        ends.fill();
        let (_, said) = ends.run(way, &[vec!["-q".to_owned()], options].concat());
        assert!(!said.contains("has no effect"), "{way:?}: {said}");
    }
}
