//! Servers of several data nodes.

use crate::{Down, is_there};
use hikyaku_bench_servers::{Scene, is_same, said, write_file};
use std::path::PathBuf;
use xtask::servers::gridftp;

#[test]
fn all_nodes_of_a_striped_server_carry_a_file() {
    if !is_there() {
        return;
    }
    let scene = Scene::new("guc-striped");
    let start = |name: &str| {
        let server = gridftp::up_striped(&scene.at(name), 2).unwrap();
        (server, Down(scene.at(name)))
    };
    let ((one, _one), (two, _two)) = (start("one"), start("two"));
    write_file(&one.data.join("file"), 30_000_003);
    // Several chunks, on connections that are used again.
    let does = |from: &str, to: &str| {
        let words = ["guc", "-stripe", "-dbg", "-p", "2", "-r", "-cd", from, to];
        let output = scene.hikyaku().args(words).output().unwrap();
        assert!(output.status.success(), "{from} {to}: {}", said(&output));
        said(&output)
    };
    let same = |a: PathBuf, b: PathBuf| assert!(is_same(&a, &b), "{a:?} {b:?}");
    let spoken = does(&format!("{}/file", one.url), "got");
    assert!(spoken.contains("> SPOR 127,0,0,1,"), "{spoken}");
    same(scene.at("got"), one.data.join("file"));
    let spoken = does("got", &format!("{}/up", one.url));
    assert!(spoken.contains("127,0,0,3,"), "{spoken}");
    same(scene.at("got"), one.data.join("up"));
    does(&format!("{}/file", one.url), &format!("{}/between", two.url));
    same(one.data.join("file"), two.data.join("between"));
    // Small files and listings, too.
    for at in 0..10 {
        write_file(&one.data.join(format!("tree/{at}")), 100_000 * at + 1);
    }
    does(&format!("{}/tree/", one.url), "tree/");
    does("tree/", &format!("{}/tree/", two.url));
    for at in 0..10 {
        same(one.data.join(format!("tree/{at}")), two.data.join(format!("tree/{at}")));
    }
}
