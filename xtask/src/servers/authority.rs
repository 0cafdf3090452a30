//! A certificate authority for tests, by openssl: it signs a host and a user, in the form that grid software reads.

use anyhow::{Context, Result, ensure};
use std::fs::{self, Permissions};
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the keys of a test are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keys {
    /// The directory of trusted authorities (`X509_CERT_DIR`).
    pub authorities: PathBuf,
    /// Certificate and key of the server.
    pub host: (PathBuf, PathBuf),
    /// Certificate and key of the user.
    pub user: (PathBuf, PathBuf),
}

/// The user's subject.
pub const USER: &str = "/O=hikyaku tests/CN=Some User";
const AUTHORITY: &str = "/O=hikyaku tests/CN=Authority";

impl Keys {
    /// Makes an authority and all keys in `folder`, for a server at `ip`, which is also `localhost`. Keys that are there
    /// are taken.
    ///
    /// # Errors
    /// openssl is missing or fails.
    pub fn make(folder: &Path, ip: IpAddr) -> Result<Self> {
        let authorities = folder.join("authorities");
        let pair = |name: &str| {
            (folder.join(format!("{name}.pem")), folder.join(format!("{name}-key.pem")))
        };
        let keys = Self { authorities, host: pair("host"), user: pair("user") };
        if keys.user.0.is_file() {
            return Ok(keys);
        }
        fs::create_dir_all(&keys.authorities)?;
        let (certificate, key) = pair("authority");
        let mut words = vec!["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650"];
        words.extend(["-subj", AUTHORITY, "-addext", "keyUsage=critical,keyCertSign,cRLSign"]);
        openssl(
            Command::new("openssl")
                .args(words)
                .arg("-keyout")
                .arg(&key)
                .arg("-out")
                .arg(&certificate),
        )?;
        let names = format!("subjectAltName=DNS:localhost,IP:{ip}");
        let sign = |(to, its_key): &(PathBuf, PathBuf), subject: &str, extension: &str| {
            let mut command = Command::new("openssl");
            command.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650"]);
            command.args(["-subj", subject, "-addext", "basicConstraints=critical,CA:FALSE"]);
            command.args(["-addext", extension, "-CA"]).arg(&certificate).arg("-CAkey").arg(&key);
            openssl(command.arg("-keyout").arg(its_key).arg("-out").arg(to))?;
            // Grid software refuses a key that others may read.
            Ok::<(), anyhow::Error>(fs::set_permissions(its_key, Permissions::from_mode(0o600))?)
        };
        sign(&keys.host, "/O=hikyaku tests/CN=localhost", &names)?;
        let mut hash = Command::new("openssl");
        let hash = openssl(hash.args(["x509", "-noout", "-hash", "-in"]).arg(&certificate))?;
        let name = |extension: &str| keys.authorities.join(format!("{}.{extension}", hash.trim()));
        fs::copy(&certificate, name("0"))?;
        let policy = format!(
            "access_id_CA X509 '{AUTHORITY}'\npos_rights globus CA:sign\n\
             cond_subjects globus '\"/O=hikyaku tests/*\"'\n"
        );
        fs::write(name("signing_policy"), policy)?;
        sign(&keys.user, USER, "extendedKeyUsage=clientAuth")?;
        Ok(keys)
    }
}

fn openssl(command: &mut Command) -> Result<String> {
    let output = command.output().context("cannot start openssl")?;
    ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}
