//! `hikyaku lab`: each subcommand.

mod background;
mod foreground;

use crate::args::{ExecArgs, LabArgs, LabCommand, LinkOptions, SetArgs, StatusArgs};
use crate::control::{Answer, Ask, ask};
use crate::lab::environment;
use crate::{namespace, runtime};
use anyhow::{Context, Result, bail};
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

/// Does what the arguments say. The exit code of `lab run` is that of its command.
pub fn run(args: LabArgs) -> Result<ExitCode> {
    match args.command {
        LabCommand::Run(args) => return foreground::run(&args),
        LabCommand::Up(args) => background::up(&args)?,
        LabCommand::Exec(args) => exec(&args)?,
        LabCommand::Set(args) => set(args)?,
        LabCommand::Status(args) => status(&args)?,
        LabCommand::Down(args) => background::down(&args.name)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn exec(args: &ExecArgs) -> Result<()> {
    runtime::socket_of(&args.name)?;
    let port = args.side.port();
    let name = namespace::name_of(&args.name, port);
    let namespaces = namespace::existing(&args.name);
    if !namespaces.contains(&name) {
        bail!("lab '{}' has no server {port}", args.name);
    }
    let [program, arguments @ ..] = &args.command[..] else { bail!("no command") };
    let mut command = namespace::command(&name, program);
    let error = command.args(arguments).envs(environment(namespaces.len() as u32 - 1)).exec();
    Err(error).context("cannot run 'ip'")
}

fn set(args: SetArgs) -> Result<()> {
    args.link.settings()?;
    let LinkOptions { pairs } = args.link;
    if pairs.is_empty() {
        bail!("nothing to set: give for example --rate 300mbit");
    }
    ask(&runtime::socket_of(&args.name)?, &Ask::Set(pairs)).map(drop)
}

fn status(args: &StatusArgs) -> Result<()> {
    let Some(name) = &args.name else {
        runtime::names().iter().for_each(|name| println!("{name}"));
        return Ok(());
    };
    let Answer::Status(report) = ask(&runtime::socket_of(name)?, &Ask::Status)? else {
        bail!("the lab answers something else");
    };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}
