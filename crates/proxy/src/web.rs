//! `hikyaku web`: a browser whose connections are carried. It has a new profile of its own, in which the near gateway is
//! the proxy and HTTP/2 and HTTP/3 are off: their windows would limit a download to a fraction of a long path's rate.

mod profile;

pub(crate) use profile::Browser;

use crate::args::{
    Bind, DESTINATION_HELP, FarLoopback, Listen, Plan, SshArgs, TransportArgs, destination, way,
};
use crate::near::{Near, Tell};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use hikyaku_console::{Interrupt, Scope, print, with_remedy};
use hikyaku_units::DataSize;
use profile::Profile;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tokio::task::spawn_blocking;

/// Options of `hikyaku web`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES, disable_version_flag = true)]
pub struct WebArgs {
    /// Where the far gateway runs.
    #[arg(value_name = "HOST", help = DESTINATION_HELP)]
    destination: OsString,
    /// The first page
    #[arg(value_name = "URL")]
    url: String,
    /// The browser
    #[arg(long, value_enum, default_value_t = Browser::Chromium)]
    browser: Browser,
    /// Its program [default: looked for in PATH]
    #[arg(long = "program", value_name = "PROGRAM")]
    browser_program: Option<OsString>,
    /// Where downloads go [default: where the browser puts them]
    #[arg(long, value_name = "DIR")]
    downloads: Option<PathBuf>,
    /// Show no window
    #[arg(long)]
    headless: bool,
    /// Tell of each connection on standard error
    #[arg(short = 'v')]
    verbose: bool,
    #[command(flatten)]
    ssh: SshArgs,
    #[command(flatten)]
    transport: TransportArgs,
}

const EXAMPLES: &str = "\
Examples:
  hikyaku web me@far https://data.example.org/run7/
  hikyaku web me@far http://10.0.0.7/ --browser firefox --downloads /data

All pages and downloads of this browser come through the far gateway, which should be near the web
server. The browser has a new profile, which is removed when the browser is closed: no cookies, no
extensions, nothing of other sessions. Pages of this machine itself (localhost) do not go through
the gateway.";

/// Runs a browser until it is closed. `memory` is what this process may take.
///
/// # Errors
///
/// The far side cannot be reached or is lost, or the browser cannot be started or fails.
pub fn run(args: &WebArgs, memory: DataSize, interrupt: &Interrupt) -> Result<()> {
    let program = program(args)?;
    let plan = Plan {
        destination: destination(&args.destination)?,
        local: Vec::new(),
        socks: Vec::new(),
        http: vec![Listen { bind: Bind::Address(([127, 0, 0, 1], 0).into()), port: 0 }],
        far_loopback: FarLoopback::Refused,
    };
    interrupt.listen().context("cannot listen for Ctrl-C")?;
    let scope = interrupt.scope();
    let tell = if args.verbose { Tell::Flows } else { Tell::Nothing };
    let way = way((&args.ssh, &args.transport), memory, scope.clone(), tell.observer())?;
    let near = Near { plan: &plan, way, tell, scope: scope.clone() };
    // The profile is removed after the browser has ended, whatever ends it.
    let mut profile = None;
    let ended = near.run(async |ports: Vec<(SocketAddr, String)>| {
        let (proxy, _) = ports.first().context("no port is listened on")?;
        let made = Profile::new(args.browser, *proxy, args.downloads.as_deref())?;
        let command = made.command(&program, &args.url, args.headless);
        profile = Some(made);
        browse(command, &scope).await
    });
    // A browser that is left is ended.
    scope.stop();
    drop(profile);
    interrupt.end_by_signal();
    ended
}

/// Runs the browser to its end. The scope ends it, whoever stops that.
async fn browse(mut command: Command, scope: &Scope) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = spawned.with_context(|| format!("cannot start {name}"))?;
    let _registration = scope.end_child(&child);
    print(format!("{name} runs; its connections are carried until it is closed\n"))?;
    let status = spawn_blocking(move || child.wait()).await?;
    let status = status.with_context(|| format!("cannot wait for {name}"))?;
    match status.success() {
        true => Ok(()),
        false => bail!("{name} has failed: {status}"),
    }
}

/// The browser's program.
fn program(args: &WebArgs) -> Result<PathBuf> {
    if let Some(program) = &args.browser_program {
        return Ok(program.into());
    }
    let names = args.browser.programs();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut candidates =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.find(|candidate| candidate.is_file()).ok_or_else(|| {
        let error = anyhow!("no program {} is in PATH", names.join(" or "));
        with_remedy(error, Some("try: --program PATH, or another --browser".to_owned()))
    })
}
