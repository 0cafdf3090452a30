//! What a binary says of its tests, and when one of them is late.

use super::*;

const LIMIT: Duration = Duration::from_secs(600);

fn tests(threads: usize, names: &[&str]) -> Tests {
    Tests::new(LIMIT, threads, names.iter().map(|&name| name.to_owned()).collect())
}

#[test]
fn a_test_that_hangs_is_named_and_counted() {
    let (mut tests, begin) = (tests(2, &["hung", "quick", "slow", "wrong"]), Instant::now());
    let at = |seconds| begin + Duration::from_secs(seconds);
    assert_eq!(tests.line("running 4 tests", begin), None);
    assert_eq!(tests.line("test quick ... ok", at(1)), Some(Duration::from_secs(1)));
    assert_eq!(tests.line("test slow ... ok", at(500)), Some(Duration::from_secs(499)));
    assert_eq!(tests.line("test wrong ... FAILED", at(501)), Some(Duration::from_secs(1)));
    assert!(tests.overdue("binary", at(600)).is_none());
    let verdict = tests.overdue("binary", at(601)).unwrap();
    assert!(verdict.starts_with("test hung ... FAILED\n"), "{verdict}");
    assert!(verdict.contains("test result: FAILED. 2 passed; 2 failed;"), "{verdict}");
}

#[test]
fn results_of_every_form_are_known() {
    let (mut tests, begin) = (tests(1, &["a", "b", "c", "d"]), Instant::now());
    let second = Duration::from_secs(1);
    tests.line("running 4 tests", begin);
    assert_eq!(tests.line("test a ... ignored, it takes long", begin), None);
    let panics = tests.line("test b - should panic ... ok", begin + second);
    assert_eq!(panics, Some(second));
    assert_eq!(tests.line("a line of the test", begin + second), None);
    assert_eq!(tests.line("test c ... FAILED", begin + 3 * second), Some(2 * second));
    assert!(tests.running.keys().eq(["d"]));
}

#[test]
fn a_lost_line_makes_no_test_late() {
    let (mut tests, begin) = (tests(1, &["a", "b", "c"]), Instant::now());
    tests.line("running 3 tests", begin);
    tests.line("test a ... a child's words", begin);
    assert_eq!(tests.line("test c ... ok", begin + LIMIT), None);
    assert!(tests.overdue("binary", begin + LIMIT + LIMIT / 2).is_none());
}

#[test]
fn a_binary_that_says_nothing_is_named() {
    let (tests, begin) = (tests(1, &[]), Instant::now());
    assert!(tests.overdue("binary", begin).is_none());
    let verdict = tests.overdue("binary", begin + Duration::from_secs(602)).unwrap();
    assert!(verdict.contains("---- binary ----"), "{verdict}");
}

#[test]
fn the_order_of_the_harness_is_known() {
    let own = std::env::current_exe().unwrap();
    let filter = OsString::from("the_order_of_the_harness_is_known");
    let listed = listed(own.as_os_str(), &[filter]);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(threads(&["--test-threads=7".into()]), 7);
}

#[test]
fn children_of_children_are_ended() {
    let mut shell =
        Command::new("sh").args(["-c", "sh -c 'sleep 600; true'; true"]).spawn().unwrap();
    let below = |id: u32| children(id).first().copied();
    let sleep = loop {
        if let Some(sleep) = below(shell.id()).and_then(below) {
            break sleep;
        }
        thread::sleep(Duration::from_millis(5));
    };
    end_with_children(shell.id());
    shell.wait().unwrap();
    let is_there = || {
        let stat = fs::read_to_string(format!("/proc/{sleep}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    while is_there() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_binary_that_is_left_out_is_not_started() {
    let run = |name: &str| {
        let leave_out = vec!["left".to_owned()];
        let command = vec![OsString::from(format!("/nowhere/deps/{name}-0123456789abcdef"))];
        run(&WatchArgs { limit: 1, leave_out, command })
    };
    assert_eq!(format!("{:?}", run("left").unwrap()), format!("{:?}", ExitCode::SUCCESS));
    assert!(run("left_over").is_err());
}
