//! Colours: on a terminal only, and never where the user does not want them.

use crate::common::skipped;
use std::process::{Command, Stdio};

/// Where a command prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Out {
    Pipe,
    Terminal,
}

/// The output of `hikyaku` with these words.
fn printed(out: Out, (name, value): (&str, &str), words: &str) -> String {
    let program = env!("CARGO_BIN_EXE_hikyaku");
    let mut command = match out {
        Out::Pipe => {
            let mut command = Command::new(program);
            command.args(words.split_whitespace());
            command
        }
        // It runs its command on a terminal of its own.
        Out::Terminal => {
            let mut command = Command::new("script");
            command.args(["-q", "-e", "-c", &format!("{program} {words}"), "/dev/null"]);
            command
        }
    };
    for unset in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(unset);
    }
    // Some libraries colour more where a build service runs them.
    command.env("CI", "true").env("TERM", "xterm").env(name, value).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{words}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Whether a text has colours: "select graphic rendition" of ECMA-48, and not only sequences that clear a line.
fn is_coloured(text: &str) -> bool {
    let sequences = text.split("\u{1b}[").skip(1);
    sequences
        .filter_map(|sequence| {
            sequence.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').chars().next()
        })
        .any(|end| end == 'm')
}

#[test]
fn a_terminal_has_colours_and_a_pipe_has_none() {
    const NOTHING: (&str, &str) = ("HIKYAKU_TEST", "");
    let wrong = ["cp /no/such/file copy", "get ftp://host/x", "lab status no"];
    for words in wrong {
        for (words, is_colored) in
            [(words.to_owned(), false), (format!("--color always {words}"), true)]
        {
            let text = printed(Out::Pipe, NOTHING, &words);
            assert_eq!(is_coloured(&text), is_colored, "{words}: {text:?}");
        }
    }
    if !xtask::on_path("script") {
        return skipped("colours on a terminal", "script is not installed");
    }
    for words in wrong {
        let text = printed(Out::Terminal, NOTHING, words);
        assert!(is_coloured(&text), "{words}: {text:?}");
        for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let text = printed(Out::Terminal, variable, words);
            assert!(!is_coloured(&text), "{variable:?} {words}: {text:?}");
        }
        let text = printed(Out::Terminal, NOTHING, &format!("--color=never {words}"));
        assert!(!is_coloured(&text), "{words}: {text:?}");
        assert!(is_coloured(&printed(Out::Terminal, ("NO_COLOR", ""), words)), "{words}");
    }
}
