//! The command line of `hikyaku view`.

use crate::frames::Fidelity;
use clap::{Args, ValueEnum};
use hikyaku_console::{DocumentArgs, NoiseArgs};
use hikyaku_image_source::{Levels, RawShape, Region};
use hikyaku_session::{ConnectArgs, SilenceArgs};
use hikyaku_units::DataSize;
use serde::Serialize;
use std::ffi::OsString;
use std::num::NonZeroU32;

/// Options of `hikyaku view`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ViewArgs {
    /// Pictures in the order in which they are shown: files, patterns ('run/*.png', run/a.%05d.png), or the same on daemons
    /// (hikyaku://HOST,HOST/PATTERN, CLUSTER:/PATTERN)
    #[arg(value_name = "PATTERN", required = true)]
    pub(crate) pictures: Vec<OsString>,
    /// Show them on a page in the browser, served at this port of the loopback address (0: any that is free)
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0")]
    pub(crate) web: Option<u16>,
    /// Read this number of frames without showing them, and print the rate
    #[arg(long, value_name = "FRAMES", conflicts_with = "web")]
    pub(crate) bench: Option<NonZeroU32>,
    /// Begin with this part of the pictures, in pixels. Default: all of a picture on the page, the middle with --bench
    #[arg(long, value_name = "X,Y,WIDTHxHEIGHT")]
    pub(crate) window: Option<Region>,
    /// Frames a second
    #[arg(long, value_name = "FPS", default_value_t = 10.0, value_parser = rate)]
    pub(crate) fps: f64,
    /// Handling of frames that arrive too late for --fps
    #[arg(long, value_name = "HOW", default_value = "drop")]
    pub(crate) late: Late,
    /// Never show losses. Otherwise a server that runs with --images sends JPEG while it plays, and exact pixels when it stands
    #[arg(long)]
    pub(crate) exact: bool,
    /// Quality of these JPEG. Default: what the path carries, from 40 to 95; 90 with --bench
    #[arg(long, value_name = "1-100", value_parser = clap::value_parser!(u8).range(1..=100), conflicts_with = "exact")]
    pub(crate) quality: Option<u8>,
    /// Begin again after the last frame
    #[arg(long = "loop")]
    pub(crate) is_looping: bool,
    /// Shape of pictures without a head: WIDTHxHEIGHTxCHANNELS, then xBYTES and @OFFSET where they are not 1 and 0
    #[arg(long, value_name = "SHAPE")]
    pub(crate) raw: Option<RawShape>,
    /// Values that are shown as black and white, where samples have more than eight bits. Default: 16 bits without a sign are
    /// shown by their upper eight, other numbers between almost the lowest and the highest of each picture
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    pub(crate) levels: Option<Levels>,
    /// Memory for frames that were read and may be shown again
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub(crate) cache: DataSize,
    /// Frames that are read at once. Default: as many as the path needs
    #[arg(long, value_name = "COUNT")]
    pub(crate) ahead: Option<NonZeroU32>,
    #[command(flatten)]
    pub(crate) form: DocumentArgs,
    /// The messages about the servers.
    #[command(flatten)]
    pub noise: NoiseArgs,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
    #[command(flatten)]
    pub(crate) silence: SilenceArgs,
}

/// Handling of frames that arrive too late.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Late {
    /// Frames are left out, so that the time is right
    Drop,
    /// All are shown, slower
    Every,
}

impl ViewArgs {
    /// Whether frames may be shown with losses while they play.
    pub(crate) fn fidelity(&self) -> Fidelity {
        match (self.exact, self.quality) {
            (true, _) => Fidelity::Exact,
            (false, Some(quality)) => Fidelity::Fixed(quality),
            (false, None) if self.bench.is_some() => Fidelity::Fixed(BENCH_QUALITY),
            (false, None) => Fidelity::Fitting,
        }
    }
}

/// The quality of JPEG with --bench, for which no rate of frames is wanted.
const BENCH_QUALITY: u8 = 90;

const EXAMPLES: &str = "\
Examples:
  hikyaku view 'run7/*.png'                    on a page in the browser
  hikyaku view run7/a.%05d.png --fps 30 --loop
      numbered frames, again and again
  hikyaku view 'hikyaku://node1,node2/run7/*.png'
      from daemons (hikyaku serve), each a part of the frames
  hikyaku view 'store:/run7/*.png'
      from the servers of [cluster.store] in the settings
  hikyaku view --raw 11000x11000x3 run7/*.rgb  files that are pixels only
  hikyaku view --bench 64 --window 3580,4420,3840x2160 'run7/*.png'

PNG, TIFF, BigTIFF, JPEG, FITS, PNM and raw pixels are shown. A window of a
picture needs only its own bytes where rows lie at known places: without
compression. Of a compressed TIFF the tiles of the window are read, of a
compressed PNG all up to the last row of the window, and a JPEG whole. Over a
slow path let the servers run with --images: they decode, and send the window
as JPEG while it plays.

Keys on the page: space play or pause, , and . a frame back or on, Home and
End, f all of the picture, 1 pixel by pixel, + and - zoom, arrows move, l
loop. Drag to move, turn the wheel to zoom.";

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.01..=240.0).contains(rate));
    rate.ok_or_else(|| "expected frames a second, from 0.01 to 240".to_owned())
}
