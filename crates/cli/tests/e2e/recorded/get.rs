//! `hikyaku get` from a web server.

use super::{Begin, Call, Ground, Records};
use crate::common::random;
use crate::common::web::Web;
use std::process::Command;

/// SHA-256 of no file here.
const WRONG: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Before the file gets its name.
const COMPLETE: Call = Call("/^renameat", 1);

#[test]
fn get_does_what_is_recorded() {
    let mut ground = Ground::new("recorded-get");
    let web = Web::start(&[("f", random(1, 3_000_001)), ("g", b"a text\n".to_vec())]);
    ground.name(format!("127.0.0.1:{}", web.port), "$WEB");
    let command = |options: &[&str], names: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.arg("get").args(options).args(names.iter().map(|name| web.url(name)));
        command.current_dir(ground.at("to")).env_remove("http_proxy").env_remove("all_proxy");
        ground.is_home_of(&mut command);
        command
    };
    let cases: [(&str, Begin, &[&str], &[&str]); 12] = [
        ("one file", Begin::New, &["--json-lines"], &["f"]),
        ("one file", Begin::Again, &["--json-lines", "-f"], &["f"]),
        ("one file", Begin::Taken, &["--json-lines"], &["f"]),
        ("one file", Begin::Killed(COMPLETE), &["--json-lines", "-f"], &["f"]),
        ("two files", Begin::New, &["--json-lines"], &["f", "g"]),
        ("two files, one missing", Begin::New, &["--json-lines"], &["nosuch", "g"]),
        ("missing file", Begin::New, &[], &["nosuch"]),
        ("another name", Begin::New, &["-o", "name"], &["g"]),
        ("to the output", Begin::New, &["-o", "-"], &["g"]),
        ("to a missing directory", Begin::New, &["-d", "dir"], &["g"]),
        ("wrong digest", Begin::New, &["--json-lines", "--sha256", WRONG], &["g"]),
        ("quiet", Begin::New, &["-q"], &["g"]),
    ];
    let mut records = Records::new();
    for (title, begin, options, names) in cases {
        let title = format!("get {title}");
        records.add(&ground, &title, begin, &|| command(options, names));
    }
    records.check("get");
}
