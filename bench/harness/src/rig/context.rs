//! What a bench gets to work with.

use crate::bench::BenchArgs;
use crate::record::provenance;
use crate::record::row::{Cell, Row};
use crate::record::store;
use crate::rig::files;
use crate::rig::peers::Peers;
use crate::rig::ramdisk::RamDisk;
use anyhow::{Context, Result};
use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};
use xtask::{Build, Profile};

/// The surroundings of a measurement.
pub(crate) struct Ctx {
    root: PathBuf,
    out: PathBuf,
    runs: u32,
    round: u32,
    is_quick: bool,
    hikyaku: OnceCell<PathBuf>,
    rawloop: OnceCell<PathBuf>,
    exact: OnceCell<PathBuf>,
    flood: OnceCell<PathBuf>,
    idle: OnceCell<PathBuf>,
    peers: Peers,
    disk: OnceCell<RamDisk>,
}

impl Ctx {
    pub(crate) fn new(root: &Path, args: &BenchArgs) -> Self {
        let out = if args.quick { args.out.join("quick") } else { args.out.clone() };
        Self {
            root: root.to_path_buf(),
            out,
            runs: args.runs,
            round: 1,
            is_quick: args.quick,
            hikyaku: OnceCell::new(),
            rawloop: OnceCell::new(),
            exact: OnceCell::new(),
            flood: OnceCell::new(),
            idle: OnceCell::new(),
            peers: Peers::default(),
            disk: OnceCell::new(),
        }
    }

    /// With this build of the product in place of the tree's.
    pub(crate) fn with_hikyaku(self, program: PathBuf) -> Self {
        Self { hikyaku: OnceCell::from(program), ..self }
    }

    #[cfg(test)]
    pub(crate) fn for_tests(runs: u32, out: &Path) -> Self {
        let args = BenchArgs { runs, out: out.to_path_buf(), ..BenchArgs::default() };
        Self::new(&xtask::workspace(), &args)
    }

    /// How often each cell is measured.
    pub(crate) fn runs(&self) -> u32 {
        self.runs
    }

    /// Which measurement of the cell this is, from 1: a seed that is the same in every session.
    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    pub(crate) fn set_round(&mut self, round: u32) {
        self.round = round;
    }

    /// Where results are kept.
    pub(crate) fn out(&self) -> &Path {
        &self.out
    }

    /// The row of this round that another bench has kept for a cell, if it was measured with
    /// the programs that are checked out.
    pub(crate) fn kept(&self, bench: &str, cell: &Cell) -> Option<Row> {
        let kept = store::read_cell(&store::cell_path(&self.out, bench, cell.id()))?;
        let is_current = self.is_same_product(&kept.commit, &provenance::commit(&self.root));
        let row = kept.runs.into_iter().nth(self.round as usize - 1);
        row.filter(|_| is_current)
    }

    /// Whether the same programs are measured at two commits: a page that changed between them
    /// changes no figure.
    pub(crate) fn is_same_product(&self, one: &str, other: &str) -> bool {
        one == other || provenance::is_same_product(&self.root, one, other)
    }

    /// How many seconds to take where `full` are due: a fifth, but not under five, for a try.
    pub(crate) fn seconds(&self, full: f64) -> f64 {
        if self.is_quick { full.min((full / 5.0).max(5.0)) } else { full }
    }

    /// Whether this is only a try.
    pub(crate) fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// How often to measure until a run is valid.
    pub(crate) fn attempts(&self) -> u32 {
        if self.is_quick { 1 } else { 3 }
    }

    /// The programs of other transports, built when first asked for.
    pub(crate) fn peer(&self, name: &str) -> Result<PathBuf> {
        self.peers.program(&self.root, name)
    }

    /// The raw loop, built when first asked for.
    pub(crate) fn rawloop(&self) -> Result<&Path> {
        self.built(&self.rawloop, "hikyaku-bench-raw", "rawloop")
    }

    /// The transfer of known bytes, built when first asked for.
    pub(crate) fn exact(&self) -> Result<&Path> {
        self.built(&self.exact, "hikyaku-bench-exact", "exact")
    }

    /// The flood of first packets, built when first asked for.
    pub(crate) fn flood(&self) -> Result<&Path> {
        self.built(&self.flood, "hikyaku-bench-flood", "flood")
    }

    /// One busy stream beside idle ones, built when first asked for.
    pub(crate) fn idle(&self) -> Result<&Path> {
        self.built(&self.idle, "hikyaku-bench-idle", "idle")
    }

    /// The release binary `hikyaku`, built when first asked for.
    pub(crate) fn hikyaku(&self) -> Result<&Path> {
        self.built(&self.hikyaku, "hikyaku-cli", "hikyaku")
    }

    /// A RAM disk for all runs of a bench, mounted when first asked for.
    pub(crate) fn disk(&self) -> Result<&Path> {
        if self.disk.get().is_none() {
            let disk = RamDisk::up()?;
            self.disk.get_or_init(|| disk);
        }
        Ok(self.disk.get().context("the RAM disk is mounted")?.path())
    }

    /// A file of `bytes` random bytes on that disk, for all runs. It is an hour old, so that a web server sends strong
    /// validators (RFC 9110, section 8.8.2.2).
    pub(crate) fn random_file(&self, bytes: u64) -> Result<PathBuf> {
        let path = self.disk()?.join(format!("random-{bytes}"));
        if !path.exists() {
            let draft = path.with_extension("part");
            files::random_file(&draft, bytes, bytes)?;
            let an_hour_ago = SystemTime::now() - Duration::from_secs(3600);
            fs::File::options().write(true).open(&draft)?.set_modified(an_hour_ago)?;
            fs::rename(&draft, &path)?;
        }
        Ok(path)
    }

    fn built<'a>(
        &self,
        kept: &'a OnceCell<PathBuf>,
        package: &str,
        binary: &str,
    ) -> Result<&'a Path> {
        if let Some(path) = kept.get() {
            return Ok(path);
        }
        println!("building {binary} (the first time takes minutes; hikyaku about 12 on two cores)");
        let path = Build { profile: Profile::Release, packages: &[package] }.program(binary)?;
        Ok(kept.get_or_init(|| path))
    }

    /// Runs a program without a shell and returns its standard output; an error if it fails or
    /// does not end in time.
    pub(crate) fn output(&self, command: &mut Command, limit: Duration) -> Result<String> {
        let name = command.get_program().to_string_lossy().into_owned();
        xtask::run(command, limit)?.success().with_context(|| format!("{name} failed"))
    }
}
