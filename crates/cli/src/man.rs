//! Manual pages, generated from the definition of the command line.

use crate::alias::Alias;
use crate::args;
use anyhow::{Context, Result};
use clap::Command;
use clap::error::ErrorKind;
use clap_mangen::Man;
use hikyaku_console::print;
use std::fs;
use std::path::{Path, PathBuf};

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
  hikyaku man cp | man -l -
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
        Some(page) => print(&page.text),
        None => {
            let text = format!("there is no verb '{}'\n", args.verb.join(" "));
            Err(clap::Error::raw(ErrorKind::InvalidSubcommand, text).into())
        }
    }
}

/// The pages of `hikyaku`, of every subcommand that its help shows, of `hscp` and of `hsftp`.
pub(crate) fn pages() -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for command in [args::command()].into_iter().chain(Alias::ALL.map(Alias::command)) {
        let mut command = without_help(command);
        command.build();
        add(&mut pages, &command)?;
    }
    Ok(pages)
}

/// Without a page for the subcommand `help`, whose purpose the pages serve themselves.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

fn add(pages: &mut Vec<Page>, command: &Command) -> Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut text = Vec::new();
    Man::new(command.clone()).source(args::VERSION.trim()).manual("hikyaku").render(&mut text)?;
    pages.push(Page { name, text });
    let shown = |verb: &&Command| !verb.is_hide_set();
    command.get_subcommands().filter(shown).try_for_each(|verb| add(pages, verb))
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
