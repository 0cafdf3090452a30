//! Blocks of README and of `docs/` that are marked `sh,test` are run as a reader types them: on `laptop`, in a home
//! directory of its own, or on the other host where the mark names it (`sh,test,node1`). A block `text,test` behind one
//! has to be what was printed, but for numbers and keys. The two hosts are on one machine, in namespaces.

mod blocks;
mod hosts;

use crate::common::{listing, wait_until};
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

/// Runs the marked blocks of a page in their order.
fn follow(hosts: &mut Hosts, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
    let all = blocks(&fs::read_to_string(path).unwrap());
    let mut commands = 0;
    for block in &all {
        let place = format!("{page}:{}", block.line);
        match block.kind {
            Kind::Commands(host) => {
                hosts.print_anew();
                run(hosts, block, host, &place);
                commands += block.lines.len();
            }
            Kind::Output => compare(hosts, block, &place),
        }
    }
    assert!(commands > 0, "{page} has no block with the mark sh,test");
}

/// Runs the lines of a block.
fn run(hosts: &mut Hosts, block: &Block, host: Host, place: &str) {
    for line in &block.lines {
        let ran = if line.starts_with("hikyaku serve ") {
            hosts.serve(host, line)
        } else {
            hosts.run(host, line)
        };
        ran.unwrap_or_else(|status| panic!("{place}: {line}: {status}\n{}", hosts.printed()));
    }
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
