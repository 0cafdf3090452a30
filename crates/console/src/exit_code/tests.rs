//! Codes of errors.

use super::*;
use anyhow::{Context, anyhow};

#[test]
fn every_code_is_documented() {
    let document = include_str!("../../../../docs/cli.md");
    for code in ExitCode::ALL {
        let row = format!("| {} |", code.number());
        assert!(document.contains(&row), "{code:?}: docs/cli.md has no row '{row}'");
    }
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
