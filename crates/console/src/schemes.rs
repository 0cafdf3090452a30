//! Which command copies from or to addresses of a scheme.

/// What to try for an address of this scheme, in lower case, where a command does not take it: the command that does.
/// `None`: no command does.
pub fn remedy_for_scheme(scheme: &str) -> Option<&'static str> {
    Some(match scheme {
        "http" | "https" => "try: hikyaku get URL, which downloads from web servers",
        "ftp" | "gsiftp" => "try: hikyaku guc URL file:///PATH, or the other way round",
        "hikyaku" | "s3" | "gfarm" | "sftp" | "scp" | "file" => {
            "try: hikyaku cp, from or to a file of this machine"
        }
        _ => return None,
    })
}

/// The host of `HOST:PATH`, a place of another machine by ssh, as scp(1) has it: a colon before the first slash.
// fuzz: none, the user's own words
pub fn host_by_ssh(word: &[u8]) -> Option<&[u8]> {
    let first = word.split(|&byte| byte == b'/').next()?;
    let end = first.iter().rposition(|&byte| byte == b':')?;
    let is_address = word[end + 1..].starts_with(b"//");
    (!is_address).then_some(&first[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_before_the_first_slash_ends_a_host() {
        for word in ["far:x", "u@far:x", "far:/x", "far:", "a:b:c/d"] {
            assert!(host_by_ssh(word.as_bytes()).is_some(), "{word}");
        }
        for word in ["x", "./a:b", "/a:b", "http://h:80/", "s3://b", ""] {
            assert_eq!(host_by_ssh(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn every_scheme_has_one_command() {
        for (scheme, command) in [("https", "get"), ("gsiftp", "guc"), ("s3", "cp")] {
            let remedy = remedy_for_scheme(scheme).unwrap();
            assert!(remedy.starts_with(&format!("try: hikyaku {command}")), "{scheme}");
        }
        assert_eq!(remedy_for_scheme("gopher"), None);
    }
}
