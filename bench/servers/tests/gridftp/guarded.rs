//! Data connections that are authenticated and encrypted.

use crate::{Down, LOOPBACK, Stage, guc_as};
use hikyaku_bench_servers::{is_same, said, write_file};
use std::fs;
use std::process::Command;
use xtask::servers::gridftp;

#[test]
fn data_connections_are_authenticated_and_encrypted() {
    let Some(stage) = Stage::new("guc-guarded") else { return };
    write_file(&stage.there("file"), 20_000_003);
    let (url, keys) = (format!("{}/file", stage.server.gsi_url), &stage.server.keys);
    // The same keys for both, so that one user may log in to both.
    fs::create_dir_all(stage.here("other")).unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-a").args([stage.here("server/keys"), stage.here("other/keys")]);
    assert!(copy.status().unwrap().success());
    let other = gridftp::up(&stage.here("other"), LOOPBACK).unwrap();
    let _other = Down(stage.here("other"));
    let between = format!("{}/file", other.gsi_url);
    for option in ["-nodcau", "-dbg", "-dcsafe", "-dcpriv"] {
        // Several chunks, on connections that are used again.
        let does = |from: &str, to: &str| {
            let words = [option, "-apt-delta", "0.02", from, to];
            let output = guc_as(&stage, keys, keys, &words);
            assert!(output.status.success(), "{option} {from} {to}: {}", said(&output));
        };
        does(&url, "got");
        assert!(is_same(&stage.here("got"), &stage.there("file")), "{option}");
        does("got", &format!("{url}-up"));
        assert!(is_same(&stage.here("got"), &stage.there("file-up")), "{option} up");
        does(&url, &between);
        assert!(is_same(&stage.there("file"), &other.data.join("file")), "{option} between");
    }
    let plain = stage.guc(&["-dcpriv", &stage.url("file"), "got"]);
    assert_eq!(plain.status.code(), Some(1), "{}", said(&plain));
    assert!(said(&plain).contains("try: gsiftp:// for every server"), "{}", said(&plain));
}
