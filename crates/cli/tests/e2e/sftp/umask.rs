//! What is made on a far side without `-p` has the bits that the umask of that machine leaves.

use crate::common::Sshd;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

/// Names, their bits, and those under the umask 027.
const MODES: [(&str, u32, u32); 7] = [
    ("open", 0o777, 0o750),
    ("open/f", 0o666, 0o640),
    ("open/read-only", 0o444, 0o440),
    ("open/all", 0o777, 0o750),
    ("closed/f", 0o644, 0o640),
    ("closed", 0o555, 0o550),
    ("", 0o711, 0o710),
];

#[test]
fn new_files_and_directories_have_the_umask_of_the_far_side() {
    let sshd = Sshd::with_lines("umask", "Subsystem sftp internal-sftp -u 0027\n");
    for dir in ["a/open", "a/closed"] {
        fs::create_dir_all(sshd.at(dir)).unwrap();
    }
    for (name, mode, _) in MODES {
        let path = sshd.at("a").join(name);
        if !path.is_dir() {
            fs::write(&path, name).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let rsh = format!("ssh -F {}", sshd.at("ssh_config").display());
    // The umask of this machine has no part in it.
    for umask in ["077", "0"] {
        let target = format!("by-{umask}");
        let mut command = Command::new("sh");
        let script = format!("umask {umask}; exec \"$@\"");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_hikyaku"), "sync", "-rt"]);
        command.args(["-e", &rsh, "--remote-path", "none"]).arg(sshd.at("a/"));
        let output = command.arg(sshd.far(&target)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for (name, _, wanted) in MODES {
            let mode = fs::metadata(sshd.at(&target).join(name)).unwrap().mode() & 0o7777;
            assert_eq!(format!("{mode:o}"), format!("{wanted:o}"), "{name} {umask}");
        }
    }
}
