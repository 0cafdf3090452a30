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
    command.env("TERM", "xterm").env(name, value).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{words}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn a_terminal_has_colours_and_a_pipe_has_none() {
    const ESCAPE: char = '\u{1b}';
    const NOTHING: (&str, &str) = ("HIKYAKU_TEST", "");
    let wrong = ["cp /no/such/file copy", "get ftp://host/x", "lab status no"];
    for words in wrong {
        for (words, is_colored) in
            [(words.to_owned(), false), (format!("--color always {words}"), true)]
        {
            let text = printed(Out::Pipe, NOTHING, &words);
            assert_eq!(text.contains(ESCAPE), is_colored, "{words}: {text:?}");
        }
    }
    if !xtask::on_path("script") {
        return skipped("colours on a terminal", "script is not installed");
    }
    for words in wrong {
        let text = printed(Out::Terminal, NOTHING, words);
        assert!(text.contains(ESCAPE), "{words}: {text:?}");
        for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let text = printed(Out::Terminal, variable, words);
            assert!(!text.contains(ESCAPE), "{variable:?} {words}: {text:?}");
        }
        let text = printed(Out::Terminal, NOTHING, &format!("--color=never {words}"));
        assert!(!text.contains(ESCAPE), "{words}: {text:?}");
        assert!(printed(Out::Terminal, ("NO_COLOR", ""), words).contains(ESCAPE), "{words}");
    }
}
