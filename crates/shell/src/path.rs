//! Paths on the server as bytes.

/// A path below a directory.
pub(crate) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    match dir {
        b"" => name.to_vec(),
        dir if dir.ends_with(b"/") => [dir, name].concat(),
        dir => [dir, b"/", name].concat(),
    }
}

/// The path that a name means in a directory.
pub(crate) fn absolute(path: &[u8], dir: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") { path.to_vec() } else { join(dir, path) }
}

/// The last name of a path, without slashes behind it; `/` of the root.
pub(crate) fn base(path: &[u8]) -> &[u8] {
    let Some(end) = path.iter().rposition(|&byte| byte != b'/') else {
        return if path.is_empty() { b"." } else { b"/" };
    };
    let path = &path[..=end];
    path.iter().rposition(|&byte| byte == b'/').map_or(path, |at| &path[at + 1..])
}

/// A path as it is printed where the user is in `dir`.
pub(crate) fn below<'a>(path: &'a [u8], dir: Option<&[u8]>) -> &'a [u8] {
    let Some(dir) = dir else { return path };
    match path.strip_prefix(dir) {
        Some([b'/', rest @ ..]) if !rest.is_empty() => rest,
        Some(rest) if dir.ends_with(b"/") && !rest.is_empty() => rest,
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_last_part() {
        for [path, name] in [["a/b", "b"], ["a/b//", "b"], ["b", "b"], ["/", "/"], ["", "."]] {
            assert_eq!(base(path.as_bytes()), name.as_bytes(), "{path}");
        }
    }

    #[test]
    fn a_path_is_printed_without_where_the_user_is() {
        assert_eq!(below(b"/a/b", Some(b"/a")), b"b");
        assert_eq!(below(b"/a/b", Some(b"/")), b"a/b");
        assert_eq!(below(b"/a/b", Some(b"/c")), b"/a/b");
        assert_eq!(below(b"/a/bc", Some(b"/a/b")), b"/a/bc");
        assert_eq!(below(b"/a/b", None), b"/a/b");
        assert_eq!(absolute(b"b", b"/a"), b"/a/b");
        assert_eq!(absolute(b"/b", b"/a"), b"/b");
        assert_eq!(absolute(b"b", b"/"), b"/b");
    }
}
