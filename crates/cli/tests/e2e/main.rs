//! End-to-end tests of the program: each runs `hikyaku` as a user does, with real servers and file systems of this machine.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod again;
mod by_sftp;
mod common;
mod cp;
mod daemons;
mod doctor;
mod ends;
mod exit_codes;
mod gfarm;
mod keys;
mod kinds;
mod many_servers;
mod mount;
mod moving;
mod names;
mod no_udp;
mod noise;
mod packages;
mod perf;
mod perf_bidir;
mod perf_codes;
mod perf_ssh;
mod pipes;
mod proxy;
mod proxy_daemon;
mod proxy_lab;
mod proxy_page;
mod proxy_transparent;
mod python;
mod rates;
mod reach;
mod reports;
#[cfg(feature = "s3")]
mod s3;
mod secrets;
mod send;
mod sftp;
mod siege;
mod sites;
mod sources;
mod stdout;
mod unfinished;
mod upload;
mod via;
mod view;
