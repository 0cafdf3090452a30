//! Every command in README and in `docs/` is one that the program accepts: the words of a shell line go to the parser of
//! the command line. Nothing is run here.

use crate::alias::Alias;
use crate::args;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// README and the pages have more commands than this. A test that finds fewer reads the wrong files.
const FEWEST: usize = 128;
/// As FEWEST, of the examples in help texts.
const FEWEST_IN_HELP: usize = 60;

/// One command line of a page.
struct Typed {
    place: String,
    words: Vec<String>,
}

#[test]
fn the_program_accepts_every_command_of_the_documents() {
    let all: Vec<Typed> = pages().iter().flat_map(|page| commands_of(page)).collect();
    assert!(all.len() >= FEWEST, "only {} commands were found", all.len());
    let wrong: Vec<String> = all.iter().filter_map(refusal).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// The examples of a help text: lines that begin with the program's name, up to the explanation behind two blanks.
#[test]
fn the_program_accepts_every_example_of_its_help() {
    let mut all = Vec::new();
    let mut open = vec![args::command()];
    while let Some(command) = open.pop() {
        let texts = [
            command.get_before_help(),
            command.get_before_long_help(),
            command.get_after_help(),
            command.get_after_long_help(),
        ];
        for line in texts.iter().flatten().flat_map(|text| lines(&text.to_string())) {
            let example = line.trim_start().split("  ").next().unwrap_or_default();
            let typed = commands(example).into_iter().filter(|words| of_the_program(words));
            let place = format!("help of {}", command.get_name());
            all.extend(typed.map(|words| Typed { place: place.clone(), words }));
        }
        open.extend(command.get_subcommands().cloned());
    }
    assert!(all.len() >= FEWEST_IN_HELP, "only {} commands were found", all.len());
    let wrong: Vec<String> = all.iter().filter_map(refusal).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// The lines of a help text that can be examples.
fn lines(text: &str) -> Vec<String> {
    let indented = text.lines().filter(|line| line.starts_with("  "));
    let examples = indented.filter(|line| line.split_whitespace().any(|word| word == "hikyaku"));
    examples.map(str::to_owned).collect()
}

/// README in each language, and all pages below `docs`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("README.ja.md")];
    let mut open = vec![root.join("docs")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Pages whose tables name whole commands. Those of other pages name parts of commands.
const TABLES_OF_COMMANDS: [&str; 3] = ["README.md", "README.ja.md", "coming-from.md"];

/// The commands in the `sh` blocks of a page, and those in the cells of a table of commands.
fn commands_of(page: &Path) -> Vec<Typed> {
    let text = fs::read_to_string(page).unwrap();
    let has_commands = TABLES_OF_COMMANDS.iter().any(|name| page.ends_with(name));
    let mut found = Vec::new();
    let mut block: Option<bool> = None;
    let mut open = String::new();
    for (number, line) in text.lines().enumerate() {
        let place = format!("{}:{}", page.display(), number + 1);
        if let Some(info) = line.strip_prefix("```") {
            let language = info.split(',').next();
            block = if block.is_some() { None } else { Some(language == Some("sh")) };
            continue;
        }
        match block {
            Some(true) => {
                open.push_str(line);
                if open.ends_with('\\') {
                    open.pop();
                    continue;
                }
                let typed = commands(&open).into_iter().filter(|words| of_the_program(words));
                found.extend(typed.map(|words| Typed { place: place.clone(), words }));
                open.clear();
            }
            None if has_commands && line.starts_with('|') => {
                let spans = line.split('`').skip(1).step_by(2).map(|span| span.replace("\\|", "|"));
                let typed = spans.flat_map(|span| commands(&span));
                // A name with nothing behind it names the command.
                let typed = typed.filter(|words| of_the_program(words) && words.len() > 2);
                found.extend(typed.map(|words| Typed { place: place.clone(), words }));
            }
            _ => {}
        }
    }
    found
}

fn of_the_program(words: &[String]) -> bool {
    words.first().is_some_and(|name| name == "hikyaku" || Alias::of(name).is_some())
}

/// Why the program does not accept these words.
fn refusal(typed: &Typed) -> Option<String> {
    if cfg!(not(feature = "s3")) && typed.words.iter().any(|word| word.starts_with("s3://")) {
        return None;
    }
    // The name of a digest is easier to read than its 64 digits.
    let digest = "0".repeat(64);
    let written = typed.words.iter().map(|word| if word == "HEX" { &digest } else { word });
    let words = written.map(OsString::from);
    let error = match Alias::of(&typed.words[0]) {
        Some(alias) => alias.command().try_get_matches_from(words).err(),
        None => args::parse(words).err(),
    };
    // Help and the version come as errors as well.
    let error = error.filter(clap::Error::use_stderr)?;
    let said = error.to_string();
    Some(format!("{}: {}: {}", typed.place, typed.words.join(" "), said.lines().next().unwrap()))
}

/// The simple commands of a line of a shell script, without its comment, its redirections, and what stands in front of the
/// name of a program: assignments and `sudo`.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut letters = line.chars().peekable();
    // A redirection takes the next word.
    let mut is_redirected = false;
    loop {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        match letters.peek().copied() {
            None | Some('#') => break,
            Some('|' | '&' | ';') => {
                letters.next();
                all.push(std::mem::take(&mut words));
            }
            Some('<' | '>') => {
                while letters.next_if(|letter| matches!(letter, '<' | '>' | '&')).is_some() {}
                is_redirected = true;
            }
            Some(_) => {
                let word = word(&mut letters);
                if std::mem::take(&mut is_redirected) {
                    continue;
                }
                // `2>file`
                let is_descriptor = word.bytes().all(|byte| byte.is_ascii_digit());
                if is_descriptor && matches!(letters.peek(), Some('<' | '>')) {
                    continue;
                }
                let is_assignment = word.split_once('=').is_some_and(|(name, _)| {
                    !name.is_empty()
                        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                });
                if !words.is_empty() || !(is_assignment || word == "sudo") {
                    words.push(word);
                }
            }
        }
    }
    all.push(words);
    all.retain(|words| !words.is_empty());
    all
}

/// One word, without its quotes.
fn word(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut word = String::new();
    let mut quote = None;
    while let Some(&letter) = letters.peek() {
        match quote {
            None if letter.is_whitespace() || "|&;<>".contains(letter) => break,
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            None if letter == '\\' => {
                letters.next();
                word.extend(letters.peek());
            }
            Some(open) if letter == open => quote = None,
            _ => word.push(letter),
        }
        letters.next();
    }
    assert_eq!(quote, None, "a quote has no end behind {word:?}");
    word
}

#[test]
fn a_line_is_split_as_a_shell_splits_it() {
    let split = |line: &str| commands(line).iter().map(|words| words.join("_")).collect::<Vec<_>>();
    assert_eq!(split("hikyaku cp 'a b' c\\ d \"e\"'f'   # it isn't"), ["hikyaku_cp_a b_c d_ef"]);
    assert_eq!(
        split("echo 'put x' | hikyaku sftp -b - far 2>log"),
        ["echo_put x", "hikyaku_sftp_-b_-_far"]
    );
    assert_eq!(split("sudo XDG=/x hikyaku keys new >> f; a & b"), ["hikyaku_keys_new", "a", "b"]);
    assert_eq!(split("# nothing"), Vec::<String>::new());
    assert_eq!(split("hikyaku get -o a=b x#y"), ["hikyaku_get_-o_a=b_x#y"]);
}
