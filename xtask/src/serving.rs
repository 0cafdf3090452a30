//! `cargo xtask servers`: servers of other projects from the command line.

use anyhow::Result;
use clap::{Args, Subcommand};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::servers::gridftp;

/// Which server, and what to do with it.
#[derive(Args)]
pub(crate) struct ServersArgs {
    #[command(subcommand)]
    server: Server,
}

#[derive(Subcommand)]
enum Server {
    /// Debian's globus-gridftp-server, for anonymous clients and for those with a certificate.
    #[command(name = "gridftp", subcommand)]
    GridFtp(Doing),
}

#[derive(Subcommand)]
enum Doing {
    /// Start a server that serves DIR/data.
    Up {
        dir: PathBuf,
        /// Where it listens.
        #[arg(long, default_value = "127.0.0.1")]
        ip: IpAddr,
    },
    /// End the server of DIR.
    Down { dir: PathBuf },
}

pub(crate) fn run(args: &ServersArgs) -> Result<ExitCode> {
    match &args.server {
        Server::GridFtp(Doing::Up { dir, ip }) => {
            xtask::ensure_present(gridftp::NEEDS)?;
            let server = gridftp::up(dir, *ip)?;
            println!("{}\n{}", server.url, server.gsi_url);
            println!("X509_CERT_DIR={}", server.keys.authorities.display());
            println!("X509_USER_CERT={}", server.keys.user.0.display());
            println!("X509_USER_KEY={}", server.keys.user.1.display());
        }
        Server::GridFtp(Doing::Down { dir }) => gridftp::down(dir)?,
    }
    Ok(ExitCode::SUCCESS)
}
