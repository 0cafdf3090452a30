//! What another user can have made or changed is not believed.

use super::*;
use rustix::fs::{CWD, Mode, mknodat};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("hikyaku-trust-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, mode: u32) -> PathBuf {
        let path = self.0.join(format!("{mode:o}"));
        fs::write(&path, "state").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn of(path: &Path, others: Others) -> Result<(), Distrust> {
    trust(File::open(path).unwrap(), Owners::User, others)
}

#[test]
fn what_others_may_change_or_a_secret_that_they_may_read_is_not_believed() {
    let scratch = Scratch::new("modes");
    let cases = [
        (0o600, Ok(()), Ok(())),
        (0o400, Ok(()), Ok(())),
        (0o644, Ok(()), Err(Distrust::Readable(0o644))),
        (0o610, Ok(()), Err(Distrust::Readable(0o610))),
        (0o620, Err(Distrust::Writable(0o620)), Err(Distrust::Writable(0o620))),
        (0o602, Err(Distrust::Writable(0o602)), Err(Distrust::Writable(0o602))),
        (0o666, Err(Distrust::Writable(0o666)), Err(Distrust::Writable(0o666))),
    ];
    for (mode, readable, secret) in cases {
        let path = scratch.file(mode);
        assert_eq!(of(&path, Others::Read), readable, "{mode:o}");
        assert_eq!(of(&path, Others::Nothing), secret, "{mode:o}");
    }
}

#[test]
fn a_folder_is_judged_as_a_file_but_for_its_names() {
    let scratch = Scratch::new("folder");
    fs::create_dir(scratch.0.join("below")).unwrap();
    for (mode, wanted) in [(0o755, Ok(())), (0o777, Err(Distrust::Writable(0o777)))] {
        fs::set_permissions(&scratch.0, Permissions::from_mode(mode)).unwrap();
        assert_eq!(of(&scratch.0, Others::Read), wanted);
    }
    fs::set_permissions(&scratch.0, Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_second_name_may_be_another_users() {
    let scratch = Scratch::new("names");
    let path = scratch.file(0o600);
    fs::hard_link(&path, scratch.0.join("again")).unwrap();
    assert_eq!(of(&path, Others::Read), Err(Distrust::Names(2)));
}

#[test]
fn a_device_is_not_believed() {
    assert_eq!(of(Path::new("/dev/null"), Others::Read), Err(Distrust::Kind));
    let scratch = Scratch::new("fifo");
    let path = scratch.0.join("fifo");
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    assert_eq!(trust(&file, Owners::User, Others::Read), Err(Distrust::Kind));
}

#[test]
fn a_list_may_be_a_pipe_or_the_null_device_and_no_other_device() {
    let list = |path: &Path| trust_list(File::options().read(true).write(true).open(path).unwrap());
    assert_eq!(list(Path::new("/dev/null")), Ok(()));
    assert_eq!(list(Path::new("/dev/zero")), Err(Distrust::Kind));
    let scratch = Scratch::new("lists");
    assert_eq!(trust_list(File::open(&scratch.0).unwrap()), Err(Distrust::Kind));
    assert_eq!(trust_list(std::io::pipe().unwrap().0), Ok(()));
    for (mode, wanted) in [(0o600, Ok(())), (0o622, Err(Distrust::Writable(0o622)))] {
        let fifo = scratch.0.join(format!("fifo-{mode:o}"));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        fs::set_permissions(&fifo, Permissions::from_mode(mode)).unwrap();
        assert_eq!(list(&fifo), wanted, "{mode:o}");
        assert_eq!(list(&scratch.file(mode)), wanted, "{mode:o}");
    }
}

#[test]
fn a_file_of_another_user_is_not_believed() {
    if !geteuid().is_root() {
        eprintln!("SKIPPED: only root can give a file to another user");
        return;
    }
    let scratch = Scratch::new("owner");
    let path = scratch.file(0o600);
    chown(&path, Some(47_123), None).unwrap();
    for owners in [Owners::User, Owners::UserOrRoot] {
        let told = trust(File::open(&path).unwrap(), owners, Others::Read);
        assert_eq!(told, Err(Distrust::Owner(47_123)));
    }
}

#[test]
fn a_remedy_is_a_command_for_the_owner() {
    let path = Path::new("/k");
    assert_eq!(Distrust::Writable(0o666).remedy(path).as_deref(), Some("chmod go-w /k"));
    assert_eq!(Distrust::Readable(0o644).remedy(path).as_deref(), Some("chmod go-rwx /k"));
    assert_eq!(Distrust::Owner(1).remedy(path), None);
}
