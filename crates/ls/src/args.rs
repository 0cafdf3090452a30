//! The command line.

use clap::Args;
use hikyaku_console::{DocumentArgs, Form, NoiseArgs};
use hikyaku_reach::bootstrap::Asking;
use hikyaku_reach::settings::Typed;
use hikyaku_reach::{SshArgs, SshOptions, WayPlan};
use hikyaku_session::{ConnectArgs, SilenceArgs};
use hikyaku_stores::CookiesArgs;
use std::ffi::OsString;

/// Options of `hikyaku ls`.
#[derive(Clone, Debug, Args)]
#[command(after_help = TEXT, disable_help_flag = true)]
pub struct LsArgs {
    /// Paths: PATH, HOST:PATH, hikyaku://HOST,HOST/PATH, CLUSTER:PATH, gfarm:///PATH, s3://BUCKET/PATH, ftp://HOST/PATH,
    /// gsiftp://HOST/PATH, or a file's http:// or https:// address
    #[arg(required = true, value_name = "ADDRESS")]
    pub(crate) addresses: Vec<OsString>,
    /// Long lines: mode, size, time and name
    #[arg(short)]
    pub(crate) long: bool,
    /// Directories with everything below them
    #[arg(short = 'r', short_alias = 'R', long)]
    pub(crate) recursive: bool,
    /// Names that begin with a dot, too
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Sizes with units, such as 1.5K
    #[arg(short = 'h', long)]
    pub(crate) human_readable: bool,
    /// Which servers or nodes have each file
    #[arg(long = "where")]
    pub(crate) places: bool,
    #[command(flatten)]
    pub(crate) form: DocumentArgs,
    /// The messages beside the list.
    #[command(flatten)]
    pub noise: NoiseArgs,
    /// Server of the bucket, if it is not Amazon's: MinIO, Ceph, Wasabi and others [default: AWS_ENDPOINT_URL]
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    #[command(flatten)]
    pub(crate) cookies: CookiesArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    #[command(flatten)]
    pub(crate) silence: SilenceArgs,
    /// Path of hikyaku on a host that is reached by ssh
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_path: Option<String>,
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

impl LsArgs {
    /// Whether a program reads the list.
    pub(crate) fn is_for_program(&self) -> bool {
        self.form.form() != Form::Words
    }

    /// How hosts behind ssh are reached. A listing is not worth sending hikyaku to a host.
    pub(crate) fn way(&self) -> WayPlan {
        let connect = &self.connect;
        WayPlan {
            ssh: SshOptions { family: connect.family.family(), ..self.ssh.options() },
            typed: Typed {
                remote_path: self.remote_path.clone(),
                timeout: self.silence.timeout,
                ..Typed::default()
            },
            carriers: connect.carriers(),
            pipes: connect.pipes.unwrap_or_default(),
            asking: Asking::Never,
            ..WayPlan::default()
        }
    }
}

const TEXT: &str = "\
A directory is listed by its names, with -r by the paths of everything below
it. Of several daemons each name is listed once; --where tells which of them
have it. In a Gfarm file system --where tells the nodes with a replica; '!'
marks a node that is down.

A host by ssh is listed through hikyaku on it, or by SFTP. A web server lists
no directories: of its addresses the file is shown.

Exit codes: 0 if all was listed; 5 if a failure may pass, 6 if it lasts, such
as no file of that name, 2 if there is both.

Examples:
  hikyaku ls -l hikyaku://node1/run7   names, sizes and times of a daemon
  hikyaku ls -r --where hikyaku://node1,node2/run7
      everything below run7, and which of the two has it
  hikyaku ls -lh gfarm:///home/me s3://bucket/run7
  hikyaku ls -l host:run7 ftp://data.example.org/run7/
  hikyaku ls --json -r lab:run7        a JSON document, of [cluster.lab]";
