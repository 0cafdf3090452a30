//! Blocks of README and of `docs/` that are marked `sh,test` are run as a reader types them: on `laptop`, in a home
//! directory of its own, or on the other host where the mark names it (`sh,test,node1`). A block `text,test` behind one
//! has to be what was printed, but for numbers and keys. The two hosts are on one machine, in namespaces. The commands in
//! the tables of `docs/coming-from.md` are run as well (`coming_from.rs`).

mod blocks;
mod coming_from;
mod hosts;
mod web;

use crate::common::{listing, skipped, wait_until};
use blocks::{Block, Kind, blocks, constant};
use hosts::{Host, Hosts};
use std::fs;
use std::path::Path;

#[test]
fn the_first_copy_of_readme_runs() {
    let Some(mut hosts) = Hosts::start("documents-readme") else { return };
    hosts.files("laptop/run7");
    follow(&mut hosts, "README.md");
    let there = listing(&hosts.at("node1/data"));
    assert_eq!(there, listing(&hosts.at("laptop/run7")));
    assert_eq!(there, listing(&hosts.at("laptop/back")));
}

#[test]
fn the_page_about_two_machines_runs() {
    let Some(mut hosts) = Hosts::start("documents-two-machines") else { return };
    hosts.files("node1/data/run7");
    follow(&mut hosts, "docs/two-machines.md");
    assert_eq!(listing(&hosts.at("node1/data/run7")), listing(&hosts.at("laptop/run7")));
}

/// Runs the marked blocks of a page in their order.
fn follow(hosts: &mut Hosts, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let all = blocks(&fs::read_to_string(path).unwrap());
    let mut commands = 0;
    let mut ran = Ran::Whole;
    for block in &all {
        let place = format!("{page}:{}", block.line);
        match block.kind {
            Kind::Commands(host) => {
                hosts.print_anew();
                ran = run(hosts, block, host, &place);
                commands += block.lines.len();
            }
            Kind::Output if ran == Ran::Whole => compare(hosts, block, &place),
            Kind::Output => {}
        }
    }
    assert!(commands > 0, "{page} has no block with the mark sh,test");
}

/// Runs the lines of a block.
fn run(hosts: &mut Hosts, block: &Block, host: Host, place: &str) -> Ran {
    for line in &block.lines {
        if line.starts_with("hikyaku mount ") && !Path::new("/dev/fuse").exists() {
            skipped(place, "there is no /dev/fuse");
            return Ran::InPart;
        }
        let ran = if line.starts_with("hikyaku serve ") {
            hosts.serve(host, line, "serving ")
        } else {
            hosts.run(host, line)
        };
        ran.unwrap_or_else(|status| panic!("{place}: {line}: {status}\n{}", hosts.printed()));
    }
    Ran::Whole
}

/// How much of a block was run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ran {
    Whole,
    /// This machine cannot run the rest.
    InPart,
}

/// Waits until the lines of a block are printed, in this order. A server may print some of it after it has begun to serve.
fn compare(hosts: &Hosts, block: &Block, place: &str) {
    let wanted: Vec<String> = block.lines.iter().map(|line| constant(line)).collect();
    let missing = || {
        let printed = hosts.printed();
        let mut lines = printed.lines().map(constant);
        wanted.iter().find(|&wanted| !lines.any(|line| line == *wanted)).cloned()
    };
    if let Some(line) = missing() {
        println!("{place}: not printed yet: {line}, but:\n{}", hosts.printed());
        wait_until("the output that the page shows", || missing().is_none());
    }
}
