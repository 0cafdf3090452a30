//! Codes of errors.

use super::*;
use anyhow::{Context, anyhow};
use signal_hook::consts::{SIGINT, SIGTERM};

/// The numbers of the variants of this module's enums.
fn numbers() -> BTreeSet<u8> {
    let number = |line: &str| line.strip_suffix(',')?.split_once(" = ")?.1.parse().ok();
    include_str!("../exit_code.rs").lines().filter_map(number).collect()
}

#[test]
fn the_table_of_exit_codes_is_complete_and_has_no_other_code() {
    let document = include_str!("../../../../docs/cli.md");
    let (_, section) = document.split_once("\n## Exit codes\n").unwrap();
    let table = section.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let numbered = table.filter(|(first, _)| first.starts_with(|c: char| c.is_ascii_digit()));
    let documented: Vec<u8> = numbered
        .flat_map(|(codes, _)| codes.split(", ").map(|code| code.parse().unwrap()))
        .collect();
    let mut known = numbers();
    for code in [ExitCode::Success, ExitCode::TooManyDeletions, ExitCode::NoCommand] {
        assert!(known.contains(&code.number()), "{known:?}");
    }
    known.extend([SIGINT, SIGTERM].map(|signal| Exit::of_signal(signal).number()));
    assert_eq!(documented, Vec::from_iter(known));
}

#[test]
fn a_command_is_told_as_a_shell_tells_it() {
    let of_raw = |status| Exit::of_command(ExitStatus::from_raw(status)).number();
    assert_eq!([0x0000, 0x0700, 0xff00].map(of_raw), [0, 7, 255]);
    assert_eq!([SIGINT, SIGTERM].map(of_raw), [130, 143]);
}

#[test]
fn the_error_kind_decides_the_exit_code() {
    let code = |kind| ExitCode::of(&Error::from(io::Error::from(kind)), &[]);
    assert_eq!(code(ErrorKind::TimedOut), ExitCode::MayPass);
    assert_eq!(code(ErrorKind::PermissionDenied), ExitCode::WillFail);
    assert_eq!(code(ErrorKind::InvalidData), ExitCode::Failed);
    let wrapped: Result<(), _> = Err(io::Error::from(ErrorKind::ConnectionRefused));
    let wrapped = wrapped.context("cannot connect").unwrap_err();
    assert_eq!(ExitCode::of(&wrapped, &[]), ExitCode::MayPass);
    assert_eq!(ExitCode::of(&anyhow!("odd"), &[]), ExitCode::Failed);
}

#[test]
fn an_error_of_a_file_counts_where_another_one_was_made_of_it() {
    for (errno, code) in [(Errno::NOSPC, ExitCode::WillFail), (Errno::IO, ExitCode::Failed)] {
        let of_file = FsError::io("write", b"f", &io::Error::from(errno));
        let error = Error::from(io::Error::other(of_file)).context("a transfer");
        assert_eq!(ExitCode::of(&error, &[]), code, "{error:#}");
    }
}

#[test]
fn what_is_not_possible_as_it_is_asked_for_is_a_mistake_of_the_command_line() {
    let plain = ExitCode::Usage.error("no patterns here");
    let told = misuse("no patterns here", "one name").context("cp");
    for error in [plain, told] {
        assert_eq!(ExitCode::of(&error, &[]), ExitCode::Usage, "{error:#}");
    }
}

#[test]
fn the_first_function_that_knows_the_error_decides() {
    let error = Error::from(io::Error::from(ErrorKind::TimedOut));
    let none: CodeOf = |_| None;
    let will: CodeOf = |_| Some(ExitCode::WillFail);
    let failed: CodeOf = |_| Some(ExitCode::Failed);
    assert_eq!(ExitCode::of(&error, &[none]), ExitCode::MayPass);
    assert_eq!(ExitCode::of(&error, &[none, will, failed]), ExitCode::WillFail);
}

#[test]
fn pieces_with_different_codes_are_a_failure() {
    use ExitCode::{Failed, MayPass, WillFail};
    assert_eq!(ExitCode::of_pieces([WillFail, WillFail]), WillFail);
    assert_eq!(ExitCode::of_pieces([MayPass]), MayPass);
    assert_eq!(ExitCode::of_pieces([MayPass, WillFail]), Failed);
    assert_eq!(ExitCode::of_pieces([]), Failed);
}
