//! The options that all commands have from one definition, beside those of the programs whose habits they follow. A
//! command that lacks one of them refuses it with the reason.

/// An option of hikyaku's own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native {
    /// As a user types it: the long name, or a letter if it has none.
    pub(crate) flag: &'static str,
    /// The commands without it.
    lacking: &'static [Lacking],
}

/// Commands without an option.
#[derive(Clone, Copy, Debug)]
struct Lacking {
    verbs: &'static [&'static str],
    why: &'static str,
    /// The nearest equivalent; empty if none exists.
    instead: &'static str,
}

/// The commands that connect to no host by ssh.
const WITHOUT_SSH: &[&str] = &["get", "guc", "mount", "view", "serve", "status"];

/// The options, as the rows of the table.
pub(crate) const NATIVE: &[Native] = &[
    native(
        "--rate",
        &[
            lacking(&["keys install", "far install"], "the data go through ssh", ""),
            lacking(&["doctor"], "it measures what a path carries", ""),
        ],
    ),
    native(
        "--connections",
        &[
            lacking(&["guc"], "it has the name of globus-url-copy", "-p N"),
            lacking(&["perf"], "a test is about one connection", "-P N for its streams"),
            lacking(&["doctor"], "it tries the ways with one connection each", ""),
            lacking(&["serve"], "clients choose the number", ""),
            lacking(&["keys install", "far install"], "one connection of ssh is used", ""),
        ],
    ),
    native(
        "--via",
        &[
            lacking(&["get", "guc"], "the address says what the server speaks", ""),
            lacking(&["perf"], "a test goes over UDP", ""),
            lacking(&["doctor"], "it tries all ways", ""),
            lacking(&["serve"], "clients choose the way", ""),
            lacking(&["keys install", "far install"], "they go through ssh", ""),
        ],
    ),
    native(
        "-4",
        &[lacking(&["serve"], "the address of --listen chooses the family", "--listen 0.0.0.0")],
    ),
    native(
        "-6",
        &[lacking(&["serve"], "the address of --listen chooses the family", "--listen '[::1]'")],
    ),
    native("--ssh-port", NO_SSH),
    native("--identity", NO_SSH),
    native("--jump", NO_SSH),
    native("--ssh-config", NO_SSH),
    native("--ssh-option", NO_SSH),
    native(
        "--remote-path",
        &[
            lacking(WITHOUT_SSH, "no program is started on another host", ""),
            lacking(&["far install"], "it installs the program", "--path PATH"),
        ],
    ),
    native(
        "--json",
        &[
            lacking(&["keys install", "far install"], "it prints a line for each host", ""),
            lacking(&["sftp"], "its commands print what sftp prints", "hikyaku cp --json"),
            lacking(
                &["serve"],
                "a daemon runs without an end",
                "--log-dir DIR, or hikyaku status --json",
            ),
        ],
    ),
    native(
        "--json-lines",
        &[
            lacking(&["sftp"], "its commands print what sftp prints", "hikyaku cp --json-lines"),
            lacking(&["ls", "view", "doctor"], "there is one result", "--json"),
            lacking(&["serve"], "the log has the events of a daemon", "--log-dir DIR"),
            lacking(&["keys install", "far install"], "it prints a line for each host", ""),
        ],
    ),
    native("--verbose", &[]),
    native("--quiet", &[]),
    native(
        "--dry-run",
        &[
            lacking(
                &["get"],
                "it would copy the files of the addresses",
                "hikyaku cp --dry-run with these addresses",
            ),
            lacking(&["ls", "perf", "doctor", "status"], "it changes nothing", ""),
            lacking(
                &["mount", "view", "proxy", "web", "serve"],
                "it does what other programs ask it to do",
                "",
            ),
            lacking(&["far install"], "it prints what each host has", "hikyaku far list HOST"),
        ],
    ),
    native(
        "--timeout",
        &[
            lacking(&["guc"], "it has the name of globus-url-copy", "-st TIME"),
            lacking(&["perf"], "it has another name", "--stall TIME"),
            lacking(&["doctor"], "each check has its own", ""),
            lacking(&["serve"], "clients choose it", ""),
            lacking(
                &["keys install", "far install"],
                "ssh has it",
                "--ssh-option ConnectTimeout=10",
            ),
        ],
    ),
];

const NO_SSH: &[Lacking] = &[lacking(WITHOUT_SSH, "ssh is not used", "")];

const fn native(flag: &'static str, lacking: &'static [Lacking]) -> Native {
    Native { flag, lacking }
}

const fn lacking(
    verbs: &'static [&'static str],
    why: &'static str,
    instead: &'static str,
) -> Lacking {
    Lacking { verbs, why, instead }
}

impl Native {
    /// Its letter, which has no other meaning in any command that has the option.
    fn letter(self) -> Option<char> {
        match self.flag {
            "--verbose" => Some('v'),
            "--quiet" => Some('q'),
            flag => flag.strip_prefix('-').filter(|rest| rest.len() == 1)?.chars().next(),
        }
    }
}

/// The reason why the command of this name has not the option that was typed, and what to try.
pub(crate) fn refusal(verb: &str, typed: &str) -> Option<(&'static str, Option<&'static str>)> {
    let letter = typed.strip_prefix('-').and_then(|rest| rest.chars().next());
    let is_it = |native: &&Native| match typed.starts_with("--") {
        true => native.flag == typed,
        false => native.letter().is_some() && native.letter() == letter,
    };
    let lacking = NATIVE.iter().find(is_it)?.lacking;
    let lacking = lacking.iter().find(|lacking| lacking.verbs.contains(&verb))?;
    Some((lacking.why, Some(lacking.instead).filter(|instead| !instead.is_empty())))
}

#[cfg(test)]
mod tests;
