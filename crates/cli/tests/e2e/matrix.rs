//! Every option of the commands that move files, on every way that their data may go: it is honoured, refused, or noted in
//! one line. The options are those of the commands' own tables.

mod cp;
mod get;
mod guc;
mod sftp;
mod sync;

use crate::common::Sshd;
use clap::{Args, Command};
use hikyaku_console::{Class, Effect, Other, Role, Row, Table, Value, Way};
use std::fs;
use std::path::PathBuf;
use std::process::Output;

#[test]
fn every_option_of_a_command_that_moves_files_has_a_row() {
    let tables = [
        (hikyaku_copy::TABLE, hikyaku_copy::CopyArgs::augment_args(Command::new("cp"))),
        (hikyaku_web_get::TABLE, hikyaku_web_get::GetArgs::augment_args(Command::new("get"))),
        (hikyaku_guc::TABLE, hikyaku_guc::GucArgs::augment_args(Command::new("guc"))),
        (hikyaku_sync::TABLE, hikyaku_sync::SyncArgs::augment_args(Command::new("sync"))),
        (hikyaku_shell::TABLE, hikyaku_shell::SftpArgs::augment_args(Command::new("sftp"))),
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
    fn required(&self, _: &Row) -> &'static [&'static str] {
        &[]
    }

    /// Whether an option is tried on a way.
    fn is_run(&self, row: &Row, way: Way) -> bool;

    /// The way that is named where an option is refused before it is known which one is left.
    fn named(&self, way: Way) -> Way {
        way
    }

    /// Whether the other end of a way is there, so that a run succeeds.
    fn has_end(&self, way: Way) -> bool;

    /// Runs the command on a way with these options and nothing else; also what it says on standard error.
    fn run(&self, way: Way, options: &[String]) -> (Output, String);

    /// An option as it is typed, with its value and with what it requires.
    fn typed(&self, row: &Row) -> Vec<String> {
        let own = [row.flag, self.value(row)].into_iter().filter(|word| !word.is_empty());
        self.required(row).iter().copied().chain(own).map(str::to_owned).collect()
    }

    /// An option of another program as it is typed, with a value if it has one.
    fn typed_other(&self, other: &Other) -> Vec<String> {
        let dashes = if other.id.starts_with('-') { "" } else { "--" };
        let value = (other.value == Value::One).then(|| "1".to_owned());
        [format!("{dashes}{}", other.id)].into_iter().chain(value).collect()
    }
}

/// Lets all sessions with the host `far` go by one login, so that many of them take less time.
fn log_in_once(sshd: &Sshd) {
    let at = |name: &str| sshd.at(name);
    let config = fs::read_to_string(at("ssh_config")).unwrap();
    let once = format!(
        "Host far\n ControlMaster auto\n ControlPersist 5\n ControlPath {}\n",
        at("master").display()
    );
    fs::write(at("ssh_config"), config + &once).unwrap();
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
            let is_named = said.contains(&table.refusal(&row, ends.named(way))) || others;
            assert!(is_named && said.contains("\ntry: "), "{} {way:?}: {said}", row.flag);
            assert_eq!(ends.made(), Vec::<PathBuf>::new(), "{} {way:?}: {said}", row.flag);
        }
    }
    // Those of another program are refused whatever the way is.
    for other in table.others {
        let Role::Refused(..) = other.role else { continue };
        ends.fill();
        let (output, said) = ends.run(table.ways[0], &ends.typed_other(other));
        assert_eq!(output.status.code(), Some(1), "{}: {said}", other.flag);
        let is_named = said.contains(&format!("no option {}", other.flag));
        assert!(is_named && said.contains("\ntry: "), "{}: {said}", other.flag);
        assert_eq!(ends.made(), Vec::<PathBuf>::new(), "{}: {said}", other.flag);
    }
}

/// All other options without effect are noted in one line each, but for a command that is to be quiet (`-q`).
fn noted(ends: &dyn Ends) {
    let table = ends.table();
    for way in table.ways.iter().copied() {
        let idle = idle(ends, way, |class| class != Class::Protects);
        let others =
            || table.others.iter().filter(|other| !matches!(other.role, Role::Refused(..)));
        let options = idle.iter().flat_map(|row| ends.typed(row));
        let options: Vec<String> =
            options.chain(others().flat_map(|other| ends.typed_other(other))).collect();
        ends.fill();
        let (output, said) = ends.run(way, &options);
        for row in &idle {
            let note = format!("hikyaku: {}\n", table.note(row, way));
            assert_eq!(said.matches(&note).count(), 1, "{way:?} {note}: {said}");
        }
        for other in others() {
            let wanted = usize::from(matches!(other.role, Role::Idle(_)));
            let note = format!("hikyaku: {} has no effect: ", other.flag);
            assert_eq!(said.matches(&note).count(), wanted, "{way:?} {note}: {said}");
        }
        if ends.has_end(way) {
            assert_eq!(output.status.code(), Some(0), "{way:?}: {said}");
        }
        ends.fill();
        let (_, said) = ends.run(way, &[vec!["-q".to_owned()], options].concat());
        assert!(!said.contains("has no effect"), "{way:?}: {said}");
    }
}
