//! The name of a file that the user did not name.

use crate::url::{Url, decoded};
use hikyaku_fs::Name;

/// The name of a file in `Content-Disposition`, or else in its URL. `None` if neither has a usable one.
pub fn name(disposition: Option<&str>, url: &Url) -> Option<Name> {
    let told = disposition.and_then(parse_disposition).and_then(|name| usable(&name));
    told.or_else(|| usable(&url.file_name()))
}

/// `filename*` or `filename` of a `Content-Disposition` (RFC 6266).
// fuzz: web
fn parse_disposition(value: &str) -> Option<Vec<u8>> {
    let (mut plain, mut extended) = (None, None);
    for (name, value) in parameters(value) {
        match name.as_str() {
            "filename" => plain = Some(value.into_bytes()),
            "filename*" => {
                // RFC 8187: charset ' language ' percent-encoded octets.
                let mut parts = value.splitn(3, '\'');
                let charset = parts.next().unwrap_or("");
                if charset.eq_ignore_ascii_case("utf-8") {
                    extended = parts.nth(1).map(decoded);
                }
            }
            _ => {}
        }
    }
    extended.or(plain)
}

/// The parameters of a header's value. Names are in lower case. A value may be a quoted string.
fn parameters(value: &str) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    let mut rest = value.split_once(';').map_or("", |(_, rest)| rest);
    while let Some((name, behind)) = rest.split_once('=') {
        let name = name.trim().trim_start_matches(';').trim().to_ascii_lowercase();
        let behind = behind.trim_start();
        let (text, end) = match behind.strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let end = behind.find(';').unwrap_or(behind.len());
                (behind[..end].trim().to_owned(), &behind[end..])
            }
        };
        parameters.push((name, text));
        rest = end.split_once(';').map_or("", |(_, rest)| rest);
    }
    parameters
}

/// A quoted string without its quotes, and the text behind it.
fn unquoted(text: &str) -> (String, &str) {
    let (mut plain, mut is_escaped) = (String::new(), false);
    for (at, c) in text.char_indices() {
        match c {
            '\\' if !is_escaped => is_escaped = true,
            '"' if !is_escaped => return (plain, &text[at + 1..]),
            c => {
                is_escaped = false;
                plain.push(c);
            }
        }
    }
    (plain, "")
}

/// A name without folders, control characters and leading dots: a server must not choose `.bashrc`. `None` for a name
/// that is too long: a part of it would be another name.
pub fn usable(name: &[u8]) -> Option<Name> {
    let name = name.rsplit(|byte| b"/\\".contains(byte)).next()?;
    let name: Vec<u8> =
        name.iter().copied().filter(|byte| *byte >= b' ' && *byte != 0x7f).collect();
    let start = name.iter().position(|&byte| byte != b'.' && byte != b' ')?;
    Name::new(&name[start..]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_name_the_file() {
        let told = |value: &str| {
            let url = Url::parse("http://a.org/x/of%20url.tar?y").unwrap();
            name(Some(value), &url).map(|name| name.as_os_str().to_string_lossy().into_owned())
        };
        let cases = [
            ("attachment; filename=a.tar", "a.tar"),
            ("attachment; filename=\"a;\\\"b\\\".tar\"; size=5", "a;\"b\".tar"),
            ("attachment; filename=x; filename*=UTF-8''na%C3%AFve", "na\u{ef}ve"),
            ("attachment; filename=\"../../etc/passwd\"", "passwd"),
            ("attachment; filename=\"C:\\\\a\\\\b\"", "b"),
            ("attachment; filename=.bashrc", "bashrc"),
            ("attachment; filename=\"a\nb\"", "ab"),
            ("attachment; filename=..", "of url.tar"),
            ("attachment; filename*=UTF-8''%2F..%2F", "of url.tar"),
            ("inline", "of url.tar"),
            ("", "of url.tar"),
        ];
        for (value, want) in cases {
            assert_eq!(told(value).as_deref(), Some(want), "{value}");
        }
    }

    #[test]
    fn a_name_is_whole_or_is_not_used() {
        let (long, longer) = ("n".repeat(255), "n".repeat(256));
        let url = |name: &str| Url::parse(&format!("http://a.org/{name}")).unwrap();
        assert_eq!(name(None, &url(&long)).unwrap().as_bytes(), long.as_bytes());
        assert_eq!(name(None, &url(&longer)), None);
        let told = format!("attachment; filename={longer}");
        assert_eq!(name(Some(&told), &url("short")).unwrap().as_bytes(), b"short");
    }

    #[test]
    fn a_url_of_a_folder_has_no_name() {
        assert_eq!(name(None, &Url::parse("http://a.org/").unwrap()), None);
        assert_eq!(name(None, &Url::parse("http://a.org/%2e%2e").unwrap()), None);
    }
}
