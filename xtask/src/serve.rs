//! `cargo xtask servers`: real servers of other projects, to try things with.

use anyhow::Result;
use clap::Subcommand;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::ensure_present;
use xtask::servers::gfarm::{Gfarm, NEEDS, Plan};
use xtask::servers::gridftp;

/// Which servers.
#[derive(Subcommand)]
pub(crate) enum Servers {
    /// Gfarm: one gfmd and several gfsd
    #[command(subcommand)]
    Gfarm(GfarmTask),
    /// globus-gridftp-server, for anonymous clients and for those with a certificate
    #[command(name = "gridftp", subcommand)]
    GridFtp(GridFtpTask),
}

/// What is done with a GridFTP server.
#[derive(Subcommand)]
pub(crate) enum GridFtpTask {
    /// Start it; it serves DIR/data
    Up {
        /// The directory; it has the configuration, the log, the keys and the files
        dir: PathBuf,
        /// Where it listens
        #[arg(long, default_value = "127.0.0.1")]
        ip: IpAddr,
    },
    /// End it
    Down {
        /// The directory
        dir: PathBuf,
    },
}

/// What is done with a Gfarm.
#[derive(Subcommand)]
pub(crate) enum GfarmTask {
    /// Start it in a directory, with an empty file system
    Up {
        /// The directory; it has the configuration, the logs and the files
        dir: PathBuf,
        /// Number of gfsd
        #[arg(short = 'n', long, default_value_t = Plan::default().nodes)]
        nodes: u8,
        /// A line of gfarm2.conf for servers and clients
        #[arg(short = 'o', long = "line")]
        lines: Vec<String>,
    },
    /// End it
    Down {
        /// The directory
        dir: PathBuf,
    },
}

/// Starts or ends servers.
pub(crate) fn run(servers: Servers) -> Result<ExitCode> {
    match servers {
        Servers::Gfarm(GfarmTask::Up { dir, nodes, lines }) => {
            ensure_present(NEEDS)?;
            let gfarm = Gfarm::up(&dir, &Plan { nodes, lines })?;
            for node in gfarm.nodes() {
                println!("gfsd at {node}:{}", gfarm.port());
            }
            println!("export GFARM_CONFIG_FILE={}", gfarm.config().display());
        }
        Servers::Gfarm(GfarmTask::Down { dir }) => Gfarm::at(&dir)?.down()?,
        Servers::GridFtp(GridFtpTask::Up { dir, ip }) => {
            ensure_present(gridftp::NEEDS)?;
            let server = gridftp::up(&dir, ip)?;
            println!("{}\n{}", server.url, server.gsi_url);
            println!("X509_CERT_DIR={}", server.keys.authorities.display());
            println!("X509_USER_CERT={}", server.keys.user.0.display());
            println!("X509_USER_KEY={}", server.keys.user.1.display());
        }
        Servers::GridFtp(GridFtpTask::Down { dir }) => gridftp::down(&dir)?,
    }
    Ok(ExitCode::SUCCESS)
}
