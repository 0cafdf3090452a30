//! The subcommands of `hikyaku lab`.

mod background;
mod foreground;
mod program;
mod sites;

use crate::args::{ExecArgs, LabArgs, LabCommand, SetArgs, StatusArgs};
use crate::control::{Answer, Request, ask};
use crate::lab::{Side, environment};
use crate::site::Layout;
use crate::trouble::{self, usage};
use crate::{namespace, runtime};
use anyhow::{Context, Result, bail};
use hikyaku_console::{Exit, ExitCode, print, print_error};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;

/// Signals on which a lab is removed before the process ends.
const TERMINATION_SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Runs a subcommand. The exit of `lab run` is its command's.
///
/// The code of a command that cannot be executed is that of [`exit_code`](crate::exit_code).
pub fn run(args: LabArgs) -> Result<Exit> {
    match args.command {
        LabCommand::Run(args) => return foreground::run(&args),
        LabCommand::Up(args) => return background::up(&args),
        LabCommand::Exec(args) => exec(&args)?,
        LabCommand::Set(args) => set(&args)?,
        LabCommand::Status(args) => status(&args)?,
        LabCommand::Hosts(args) => sites::hosts(&args)?,
        LabCommand::Check(args) => sites::check(&args)?,
        LabCommand::Down(args) => background::down(&args.name)?,
    }
    Ok(ExitCode::Success.into())
}

fn exec(args: &ExecArgs) -> Result<()> {
    runtime::socket_of(&args.name)?;
    let (name, environment) = match runtime::layout_of(&args.name)? {
        Some(layout) => host_of_sites(args, &layout)?,
        None => host_of_ends(args)?,
    };
    let [program, arguments @ ..] = &args.command[..] else { bail!("no command") };
    program::check(program)?;
    let mut command = namespace::command(&name, program);
    let error = command.args(arguments).envs(environment).exec();
    Err(namespace::explain_ip(error))
}

/// The name of a namespace, and the environment variables for programs in it.
type ProgramContext = (String, Vec<(String, String)>);

fn host_of_ends(args: &ExecArgs) -> Result<ProgramContext> {
    let side: Side = args.host.parse().map_err(|text: String| usage(text))?;
    let name = namespace::name_of(&args.name, side.port());
    let namespaces = namespace::existing(&args.name);
    if !namespaces.contains(&name) {
        let text = format!("lab '{}' has no server {}", args.name, side.port());
        return Err(trouble::of(ErrorKind::NotFound, text));
    }
    Ok((name, environment(namespaces.len() as u32 - 1)))
}

fn host_of_sites(args: &ExecArgs, layout: &Layout) -> Result<ProgramContext> {
    if layout.find(&args.host).is_none() {
        let names: Vec<_> = layout.hosts().map(|host| layout.name(host)).collect();
        let (lab, host) = (&args.name, &args.host);
        let text = format!("lab '{lab}' has no host '{host}', only: {}", names.join(", "));
        return Err(trouble::of(ErrorKind::NotFound, text));
    }
    let name = namespace::name_of_host(&args.name, &args.host);
    Ok((name, layout.environment(&args.name)))
}

fn set(args: &SetArgs) -> Result<()> {
    let changes = args.changes()?;
    if changes.is_empty() {
        return Err(usage("nothing to set: give an option such as --rate 300mbit"));
    }
    ask(&runtime::socket_of(&args.name)?, &Request::Set(changes)).map(drop)
}

fn status(args: &StatusArgs) -> Result<()> {
    let Some(name) = &args.name else { return list(args.json) };
    let Answer::Status(report) = ask(&runtime::socket_of(name)?, &Request::Status)? else {
        bail!("the lab sent an unexpected answer");
    };
    if args.json {
        print(serde_json::to_string_pretty(&report)? + "\n")
    } else {
        print(report.to_string())
    }
}

/// Lists the running labs. Those whose process was killed are named on standard error.
fn list(as_json: bool) -> Result<()> {
    let names = runtime::names();
    for name in runtime::dead_names() {
        print_error(format!("lab: '{name}' was killed; 'lab down {name}' removes its remains\n"));
    }
    if as_json {
        return print(serde_json::to_string(&names)? + "\n");
    }
    if names.is_empty() {
        return print("no lab is running\n");
    }
    print(names.iter().map(|name| format!("{name}\n")).collect::<String>())
}

/// Ends this process by `signal`'s default action after everything has been removed. A shell loop
/// around it then stops, and the shell reports 128 plus the signal number.
fn end_by(signal: i32) -> Result<Exit> {
    emulate_default_handler(signal).context("cannot end by the signal")?;
    Ok(Exit::of_signal(signal))
}
