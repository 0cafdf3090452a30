//! `mimeapps.list`, in which a user's default programs stand (Association between MIME types and applications,
//! freedesktop.org, version 1.0.1): one line is added to it, or taken out. All other bytes stay as they are.

/// The group of the default programs.
const GROUP: &[u8] = b"[Default Applications]";
/// The key of links of the scheme.
const KEY: &[u8] = b"x-scheme-handler/hikyaku";

/// Another program has links of this scheme.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Taken(pub(super) String);

/// What the list says of links of the scheme.
struct Line<'a> {
    /// Where it begins.
    at: usize,
    /// The line, with its end.
    text: &'a [u8],
    /// The programs, the default one first.
    programs: Vec<&'a [u8]>,
}

/// The list with `program` as the default. `None` if it is the default already.
///
/// # Errors
///
/// Another program is.
pub(super) fn with(list: &[u8], program: &str) -> Result<Option<Vec<u8>>, Taken> {
    if let Some(line) = find(list) {
        return match line.programs.first() {
            Some(first) if *first == program.as_bytes() => Ok(None),
            first => Err(Taken(String::from_utf8_lossy(first.unwrap_or(&&b""[..])).into_owned())),
        };
    }
    let mut line = [KEY, b"=", program.as_bytes(), b";\n"].concat();
    let group = lines(list).find(|(_, text)| text.trim_ascii() == GROUP);
    Ok(Some(match group {
        Some((at, header)) => {
            let (before, after) = list.split_at(at + header.len());
            let end: &[u8] = if header.ends_with(b"\n") { b"" } else { b"\n" };
            [before, end, &line, after].concat()
        }
        None => {
            let end: &[u8] = if list.is_empty() || list.ends_with(b"\n") { b"" } else { b"\n" };
            line.splice(0..0, [GROUP, b"\n"].concat());
            [list, end, &line].concat()
        }
    }))
}

/// The list without `program` among those for links of the scheme. `None` if it is not there.
pub(super) fn without(list: &[u8], program: &str) -> Option<Vec<u8>> {
    let line = find(list)?;
    let rest: Vec<&[u8]> =
        line.programs.iter().copied().filter(|name| *name != program.as_bytes()).collect();
    if rest.len() == line.programs.len() {
        return None;
    }
    let line_now = match rest.is_empty() {
        true => Vec::new(),
        false => [KEY, b"=", &rest.join(&b';'), b";\n"].concat(),
    };
    Some([&list[..line.at], &line_now, &list[line.at + line.text.len()..]].concat())
}

/// Whether a list says nothing at all.
pub(super) fn is_bare(list: &[u8]) -> bool {
    lines(list).all(|(_, line)| matches!(line.trim_ascii(), b"" | GROUP))
}

fn find(list: &[u8]) -> Option<Line<'_>> {
    let mut is_in_group = false;
    lines(list).find_map(|(at, text)| {
        let trimmed = text.trim_ascii();
        if trimmed.starts_with(b"[") {
            is_in_group = trimmed == GROUP;
        }
        let equals = text.iter().position(|&byte| byte == b'=')?;
        let is_ours = is_in_group && text[..equals].trim_ascii() == KEY;
        let programs = text[equals + 1..].split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let programs = programs.filter(|program| !program.is_empty()).collect();
        is_ours.then_some(Line { at, text, programs })
    })
}

/// The lines with their ends, and where each begins.
fn lines(list: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    list.split_inclusive(|&byte| byte == b'\n').map(move |line| {
        let begin = at;
        at += line.len();
        (begin, line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "ours.desktop";

    fn with_ours(list: &str) -> Result<Option<String>, Taken> {
        Ok(with(list.as_bytes(), OURS)?.map(|list| String::from_utf8(list).unwrap()))
    }

    #[test]
    fn one_line_is_added_and_the_others_stay() {
        let line = "x-scheme-handler/hikyaku=ours.desktop;\n";
        let group = "[Default Applications]\n";
        for (list, wanted) in [
            ("", format!("{group}{line}")),
            ("[Added Associations]\na=b;", format!("[Added Associations]\na=b;\n{group}{line}")),
            ("[Default Applications]", format!("{group}{line}")),
            (
                "# mine\n[Default Applications]\ntext/html=x.desktop\n\n[Other]\nc=d\n",
                format!("# mine\n{group}{line}text/html=x.desktop\n\n[Other]\nc=d\n"),
            ),
            // In another group the key says something else.
            (
                "[Added Associations]\nx-scheme-handler/hikyaku=other.desktop\n",
                format!(
                    "[Added Associations]\nx-scheme-handler/hikyaku=other.desktop\n{group}{line}"
                ),
            ),
        ] {
            let found = with_ours(list).unwrap().unwrap();
            assert_eq!(found, wanted, "{list:?}");
            assert_eq!(with_ours(&found), Ok(None), "{list:?}");
            let back = without(found.as_bytes(), OURS).unwrap();
            assert_eq!(String::from_utf8(back).unwrap(), wanted.replace(line, ""), "{list:?}");
        }
        assert!(is_bare(b"\n[Default Applications]\n") && !is_bare(b"# mine\n"));
        let odd = b"[Default Applications]\nb=\xff\xfe\n";
        let found = with(odd, OURS).unwrap().unwrap();
        assert!(found.ends_with(b"b=\xff\xfe\n") && without(&found, OURS).unwrap() == odd);
    }

    #[test]
    fn another_program_is_never_replaced() {
        for list in [
            "[Default Applications]\nx-scheme-handler/hikyaku=other.desktop;ours.desktop;\n",
            "[Default Applications]\nx-scheme-handler/hikyaku = other.desktop\n",
        ] {
            assert_eq!(with_ours(list), Err(Taken("other.desktop".to_owned())));
        }
        assert_eq!(
            with_ours("[Default Applications]\nx-scheme-handler/hikyaku=\n"),
            Err(Taken(String::new()))
        );
        let list =
            b"[Default Applications]\nx-scheme-handler/hikyaku=ours.desktop;b.desktop\nc=d\n";
        let wanted = b"[Default Applications]\nx-scheme-handler/hikyaku=b.desktop;\nc=d\n";
        assert_eq!(without(list, OURS).unwrap(), wanted);
        assert_eq!(without(wanted, OURS), None);
    }
}
