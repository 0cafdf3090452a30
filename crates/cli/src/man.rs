//! Manual pages, generated from the definition of the command line.

use crate::alias::Alias;
use crate::{args, help};
use anyhow::{Context, Result};
use clap::Command;
use clap::error::ErrorKind;
use clap_mangen::Man;
use hikyaku_console::print;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::{self, File};
use std::io::{IsTerminal, Seek, Write, stdout};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process;

/// Options of `hikyaku man`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Subcommand whose page to print, such as 'cp' or 'lab run' [default: the page of hikyaku
    /// itself]
    #[arg(conflicts_with = "all")]
    verb: Vec<String>,
    /// Write all pages into DIR, which is created if it does not exist
    #[arg(long, value_name = "DIR")]
    all: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  hikyaku man cp
  hikyaku man --all ~/.local/share/man/man1";

/// A page and its name, such as `hikyaku-lab-run`.
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) text: Vec<u8>,
}

/// Prints one page, or writes all of them.
pub(crate) fn run(args: &ManArgs) -> Result<()> {
    let pages = pages()?;
    if let Some(folder) = &args.all {
        return write_all(folder, &pages);
    }
    let verb = args.verb.join("-");
    let is_it = |page: &&Page| {
        let own = page.name.strip_prefix("hikyaku").unwrap_or(&page.name);
        own.trim_start_matches('-') == verb
    };
    match pages.iter().find(is_it) {
        Some(page) if stdout().is_terminal() => shown(&page.text),
        Some(page) => print(&page.text),
        None => {
            let text = format!("no subcommand '{}'\n", args.verb.join(" "));
            Err(clap::Error::raw(ErrorKind::InvalidSubcommand, text).into())
        }
    }
}

/// Shows a page by man(1), which takes the place of this process: Ctrl-C and the terminal are its own then. A system without
/// it gets the page as it is.
fn shown(page: &[u8]) -> Result<()> {
    let mut text = File::from(memfd_create("hikyaku-man", MemfdFlags::CLOEXEC)?);
    text.write_all(page)?;
    text.rewind()?;
    // It returns only where there is no such program.
    let _ = process::Command::new("man").args(["-l", "-"]).stdin(text).exec();
    print(page)
}

/// The pages of `hikyaku`, of every subcommand that its help shows, of `hscp` and of `hsftp`.
pub(crate) fn pages() -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for command in [args::plain()].into_iter().chain(Alias::ALL.map(Alias::plain)) {
        let mut command = without_help(command);
        command.build();
        let verb = match command.get_name() {
            "hikyaku" => "",
            name => Alias::of(name).map_or("", Alias::verb),
        };
        add(&mut pages, &command, verb)?;
    }
    Ok(pages)
}

/// Without a page for the subcommand `help`, whose purpose the pages serve themselves.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn add(pages: &mut Vec<Page>, command: &Command, verb: &str) -> Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut text = Vec::new();
    let shown = command.clone().override_usage(synopsis(command, verb));
    Man::new(shown).source(args::VERSION.trim()).manual("hikyaku").render(&mut text)?;
    pages.push(Page { name, text });
    let mut below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.try_for_each(|below| {
        add(pages, below, format!("{verb} {}", below.get_name()).trim_start())
    })
}

/// The usage with each option and its value.
fn synopsis(command: &Command, verb: &str) -> String {
    let mut words = vec![command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned()];
    let options = command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional());
    words.extend(options.map(|option| {
        let name = match (option.get_short(), option.get_long()) {
            (Some(short), _) => format!("-{short}"),
            (None, long) => format!("--{}", long.unwrap_or_default()),
        };
        let names = option.get_value_names().filter(|_| option.get_action().takes_values());
        let values: String =
            names.unwrap_or_default().iter().map(|name| format!(" {name}")).collect();
        format!("[{name}{values}]")
    }));
    match help::operands(verb) {
        Some(operands) => words.push(operands.to_owned()),
        None => {
            let operands = command.get_positionals().filter(|arg| !arg.is_hide_set());
            words.extend(operands.map(|operand| match operand.is_required_set() {
                true => operand.to_string(),
                false => format!("[{}]", operand.to_string().trim_matches(['[', ']'])),
            }));
        }
    }
    if command.has_subcommands() {
        words.push("COMMAND".to_owned());
    }
    words.join(" ")
}

fn write_all(folder: &Path, pages: &[Page]) -> Result<()> {
    let cannot = |path: &Path| path.display().to_string();
    fs::create_dir_all(folder).with_context(|| cannot(folder))?;
    for page in pages {
        let path = folder.join(format!("{}.1", page.name));
        fs::write(&path, &page.text).with_context(|| cannot(&path))?;
    }
    Ok(())
}
