//! The texts of `hikyaku help`, of `hikyaku VERB -h`, and of `hikyaku help VERB`.
//!
//! The commands define their options and one text with examples and notes. From these, this module makes a short help
//! (usage, three examples, the options used most) and a long one (all of it, the examples first).

use clap::{Arg, ArgAction, Command};

/// The commands in the order of the first help. Commands of one entry share a line, with the words of the first.
const GROUPS: [(&str, &[&[&str]]); 5] = [
    (
        "Move files",
        &[
            &["cp"],
            &["sync"],
            &["sftp"],
            &["ls"],
            &["get"],
            &["guc"],
            &["mount", "umount"],
            &["view"],
        ],
    ),
    ("Measure", &[&["perf"], &["doctor"], &["report"], &["lab"]]),
    ("Carry", &[&["proxy"], &["web"]]),
    ("Set up", &[&["serve"], &["keys"], &["far"], &["status"], &["config"]]),
    ("Other", &[&["completions"], &["man"]]),
];

/// The options that the short help of a command shows, if it has many. Others show all.
const USED_MOST: &[(&str, &[&str])] = &[
    ("cp", &["-r", "-p", "-a", "-n", "-l", "-P", "-i", "-J", "--exclude", "--via", "--bootstrap"]),
    ("sftp", &["-b", "-r", "-p", "-a", "-l", "-P", "-i", "-J", "--via"]),
    ("sync", &["-a", "-n", "-i", "-v", "-u", "--delete", "--exclude", "-e", "--rate"]),
    ("get", &["-o", "-d", "-f", "-j", "-n", "--mirror", "--sha256", "--limit-rate", "-q"]),
    ("ls", &["-l", "-r", "-a", "-h", "--where", "--json"]),
    ("guc", &["-p", "-r", "--cd", "--cc", "-c", "--cksm", "--dcpriv", "--nodcau", "--trust-pasv"]),
    ("mount", &["-o", "-f", "--cache", "--attr-ttl", "--stage", "--status", "--no-udp"]),
    ("view", &["--web", "--bench", "--window", "--fps", "--exact", "--loop", "--cache"]),
    (
        "perf",
        &["-s", "-c", "-p", "-t", "-R", "--bidir", "-P", "-b", "-n", "-J", "--sweep", "--mesh"],
    ),
    (
        "keys install",
        &[
            "--root",
            "--ro",
            "--max-rate",
            "--port",
            "--list",
            "--dry-run",
            "--remote-path",
            "-P",
            "-i",
            "-J",
        ],
    ),
    ("doctor", &["--dir", "--json", "--bootstrap", "--remote-path", "--udp-ports", "--jump"]),
    ("proxy", &["-L", "-R", "-D", "--http", "--for-command", "--to", "-f"]),
    (
        "web",
        &[
            "--browser",
            "--downloads",
            "--headless",
            "--site",
            "--extension",
            "--install-handler",
            "--rate",
        ],
    ),
    (
        "serve",
        &["--root", "--writable", "--allow", "--listen", "--authorized-keys", "--key", "--rate"],
    ),
    (
        "lab run",
        &["--rate", "--rtt", "--loss", "--queue", "--servers", "--server-cmd", "--site", "--link"],
    ),
    ("lab up", &["--rate", "--rtt", "--loss", "--queue", "--servers", "--site", "--link"]),
    ("lab set", &["--rate", "--rtt", "--loss", "--queue", "--link"]),
];

/// The operands of commands whose definition has too few names for them.
const OPERANDS: [(&str, &str); 3] = [
    ("cp", "SOURCE... TARGET"),
    ("perf", "-s | HOST"),
    ("proxy", "HOST [LISTENER]... [-- COMMAND]"),
];

/// Most columns of a line.
const COLUMNS: usize = 78;
/// Examples of a short help.
const EXAMPLES_SHORT: usize = 3;
/// The most columns that options and their values take beside their texts.
const NAME_COLUMNS_MAX: usize = 24;

const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

const FIRST_STEPS: &str = "
First steps:
  hikyaku cp -r run7/ user@host:data/    copy a directory, as scp does
  hikyaku doctor user@host               find what limits this path
  hikyaku cp -h; hikyaku help cp         usual options; all options";

/// Gives a whole program its help.
pub(crate) fn of_program(program: Command) -> Command {
    let overview = overview(&program);
    with_helps(program, "hikyaku", "").override_help(overview)
}

/// Gives the program `name`, which is the command `verb`, its help.
pub(crate) fn of_alias(command: Command, name: &str, verb: &str) -> Command {
    with_help(command, name, verb)
}

/// The operands of a command, if its definition has too few names for them.
pub(crate) fn operands(verb: &str) -> Option<&'static str> {
    OPERANDS.iter().find(|(name, _)| *name == verb).map(|(_, operands)| *operands)
}

fn overview(program: &Command) -> String {
    let about = |name: &str| {
        let verb = program.find_subcommand(name).filter(|verb| !verb.is_hide_set())?;
        Some(verb.get_about().map(ToString::to_string).unwrap_or_default())
    };
    let title = program.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{title}\n\nUsage: hikyaku COMMAND [OPTIONS] [ARGUMENTS]\n");
    for (group, lines) in GROUPS {
        text.push_str(&format!("\n{group}:\n"));
        for names in lines {
            if let Some(about) = names.first().and_then(|name| about(name)) {
                text.push_str(&format!("  {:13}  {about}\n", names.join(", ")));
            }
        }
    }
    text + FIRST_STEPS
}

/// Gives a command and those below it their helps. `verb` is `lab run`, without the name of the program.
fn with_helps(command: Command, program: &str, verb: &str) -> Command {
    let command = command.mut_subcommands(|below| {
        let path = format!("{verb} {}", below.get_name()).trim_start().to_owned();
        with_helps(below, program, &path)
    });
    with_help(command, format!("{program} {verb}").trim_end(), verb)
}

fn with_help(command: Command, path: &str, verb: &str) -> Command {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (examples, notes): (Vec<&str>, Vec<&str>) =
        text.split("\n\n").partition(|part| part.starts_with("Examples:"));
    let (examples, notes) = (examples.join("\n"), notes.join("\n\n"));
    let short = short(&command, (path, verb), &examples);
    let command = match operands(verb) {
        Some(operands) => command.override_usage(format!("{path} [OPTIONS] {operands}")),
        None => command,
    };
    // A command that has a flag of its own switches that of clap off for the commands below it, too.
    let has_flag = command.get_arguments().any(|arg| arg.get_id() == "help");
    let command = match has_flag {
        true => command,
        false => command.disable_help_flag(true).arg(help_flag()),
    };
    let command = command.help_template(TEMPLATE);
    // A command without examples has few options, and one help.
    if examples.is_empty() {
        return command;
    }
    let command = command.before_help(short).before_long_help(examples);
    let command = match notes.is_empty() {
        true => command.after_help(None::<&str>),
        false => command.after_help(None::<&str>).after_long_help(notes),
    };
    command.mut_args(|arg| arg.hide_short_help(true))
}

/// The option that clap would add by itself, and then could not hide from a short help.
fn help_flag() -> Arg {
    let flag = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    flag.help("Print help (-h: the usual options only)")
}

/// The short help behind the usage.
fn short(command: &Command, (path, verb): (&str, &str), examples: &str) -> String {
    let mut parts = vec![first_examples(examples).join("\n")];
    let most = USED_MOST.iter().find(|(name, _)| *name == verb).map(|(_, flags)| *flags);
    let shown = |arg: &&Arg| {
        let flags = [
            arg.get_short().map(|short| format!("-{short}")),
            arg.get_long().map(|long| format!("--{long}")),
        ];
        let is_used =
            |most: &[&str]| flags.iter().flatten().any(|flag| most.contains(&flag.as_str()));
        !arg.is_positional() && !arg.is_hide_set() && most.is_none_or(is_used)
    };
    let lines: Vec<(String, String)> = command.get_arguments().filter(shown).map(line).collect();
    let widest =
        lines.iter().map(|(name, _)| name.len()).filter(|len| *len <= NAME_COLUMNS_MAX).max();
    let column = widest.unwrap_or(0);
    let options: Vec<String> = lines
        .iter()
        .map(|(name, text)| {
            let room = COLUMNS.saturating_sub(column.max(name.len()) + 4);
            format!("  {name:column$}  {}", fitted(text, room))
        })
        .collect();
    if !options.is_empty() {
        let heading = if most.is_some() { "Options used most:" } else { "Options:" };
        parts.push(format!("{heading}\n{}", options.join("\n")));
    }
    parts.push(match path.strip_prefix("hikyaku") {
        Some(verb) => format!("All options: hikyaku help{verb}"),
        None => format!("All options: {path} --help"),
    });
    parts.join("\n\n")
}

/// The first examples, each of which may go on in lines that are indented further.
fn first_examples(examples: &str) -> Vec<&str> {
    let mut count = 0;
    let is_begin =
        |line: &str| line.strip_prefix("  ").is_some_and(|example| !example.starts_with(' '));
    let counted = |line: &&str| {
        count += usize::from(is_begin(line));
        count <= EXAMPLES_SHORT
    };
    examples.lines().take_while(counted).collect()
}

/// An option with its value, and the first sentence of its help.
fn line(arg: &Arg) -> (String, String) {
    let values = match (arg.get_action().takes_values(), arg.get_value_names()) {
        (true, Some(names)) => {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            format!(" {}", names.join(" "))
        }
        _ => String::new(),
    };
    // The usage of a command has the forms of long values.
    let values = if values.len() > NAME_COLUMNS_MAX - 8 { "" } else { &values };
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}{values}"),
        (Some(short), None) => format!("-{short}{values}"),
        (None, long) => format!("    --{}{values}", long.unwrap_or_default()),
    };
    let help = arg.get_help().or_else(|| arg.get_long_help()).map(ToString::to_string);
    let help = help.unwrap_or_default().replace('\n', " ");
    let end = [". ", "; ", " [default"].iter().filter_map(|end| help.find(end)).min();
    (name, help[..end.unwrap_or(help.len())].trim_end_matches('.').to_owned())
}

/// The text without the last of its parts that do not fit.
fn fitted(text: &str, room: usize) -> &str {
    let mut text = text;
    while text.chars().count() > room {
        match [": ", ", ", " ("].iter().filter_map(|part| text.rfind(part)).max() {
            Some(end) => text = &text[..end],
            None => return text,
        }
    }
    text
}

#[cfg(test)]
mod tests;
