//! Words that a launched server says, and ways to log in to it.

use super::*;
use hikyaku_crypto::Identity;

#[test]
fn a_server_is_heard_after_what_start_up_files_print() {
    let key = Identity::generate().unwrap().fingerprint();
    let said = format!("welcome\n\u{ff}\nhikyaku-session 60123 {key}\n");
    assert_eq!(first_line(&mut said.as_bytes()), Some((60123, key)));
    for wrong in ["", "welcome\n", "hikyaku-session 0 SHA256:x\n", "hikyaku-session 70000\n"] {
        assert_eq!(first_line(&mut wrong.as_bytes()), None, "{wrong}");
    }
    let noise = "x\n".repeat(NOISE_BYTES_MAX as usize / 2);
    assert_eq!(first_line(&mut [&noise, said.as_str()].concat().as_bytes()), None);
}

#[test]
fn others_are_logged_in_to_through_the_primary() {
    let launcher = |jump: Option<&str>, primary: Option<&str>| Launcher {
        ssh: SshOptions { jump: jump.map(OsString::from), ..SshOptions::default() },
        remote_path: None,
        primary: primary.map(str::to_owned),
        scope: Scope::default(),
    };
    let jump = |launcher: Launcher, host: &str| {
        let host = Destination { user: None, host: host.to_owned(), port: None };
        let words = launcher.words(&host, 2).unwrap();
        let at = words.iter().position(|word| word == "-J")?;
        Some(words[at + 1].to_str().unwrap().to_owned())
    };
    assert_eq!(jump(launcher(None, None), "b"), None);
    assert_eq!(jump(launcher(None, Some("a")), "a"), None);
    assert_eq!(jump(launcher(None, Some("a")), "b").as_deref(), Some("a"));
    assert_eq!(jump(launcher(Some("gate"), Some("a")), "a").as_deref(), Some("gate"));
    assert_eq!(jump(launcher(Some("gate"), Some("a")), "b").as_deref(), Some("gate,a"));
}
