//! Patterns with alternatives: `{a,b}` stands for a pattern with `a` and one with `b`.

/// The most patterns that one may stand for.
const PATTERNS_MAX: usize = 1 << 12;

/// The patterns that a pattern stands for, in their order; `None` if there are too many. Braces that are not closed are
/// letters.
// fuzz: none, the user's own words
pub(super) fn expanded(pattern: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut open, mut done) = (vec![pattern.to_vec()], Vec::new());
    while let Some(pattern) = open.pop() {
        match first(&pattern) {
            None => done.push(pattern),
            Some((begin, end, inner)) => {
                let whole = |part: &[u8]| [&pattern[..begin], part, &pattern[end..]].concat();
                // The last one is taken from the list first.
                open.extend(inner.iter().rev().map(|part| whole(part)));
            }
        }
        if open.len() + done.len() > PATTERNS_MAX {
            return None;
        }
    }
    Some(done)
}

/// Where the first pair of braces begins and ends, and the alternatives between them.
fn first(pattern: &[u8]) -> Option<(usize, usize, Vec<&[u8]>)> {
    let begins = letters(pattern).filter(|&(_, byte)| byte == b'{').map(|(at, _)| at);
    begins.into_iter().find_map(|begin| {
        let (mut depth, mut from, mut inner) = (0_usize, begin + 1, Vec::new());
        for (at, byte) in letters(pattern).skip_while(|&(at, _)| at <= begin) {
            match byte {
                b'{' => depth += 1,
                b',' if depth == 0 => {
                    inner.push(&pattern[from..at]);
                    from = at + 1;
                }
                b'}' if depth == 0 => {
                    inner.push(&pattern[from..at]);
                    return Some((begin, at + 1, inner));
                }
                b'}' => depth -= 1,
                _ => {}
            }
        }
        None
    })
}

/// The bytes that mean themselves or a part of a brace: none behind a backslash, and none of a set.
fn letters(pattern: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let byte = *pattern.get(at)?;
            let here = at;
            match byte {
                b'\\' => at += 2,
                b'[' => {
                    let end = pattern[at + 1..].iter().skip(1).position(|&byte| byte == b']');
                    at += end.map_or(1, |end| end + 3);
                }
                _ => {
                    at += 1;
                    return Some((here, byte));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_told_in_their_order() {
        let cases: [(&str, &[&str]); 14] = [
            ("a", &["a"]),
            ("{a,b}", &["a", "b"]),
            ("x{b,a}y", &["xby", "xay"]),
            ("d/{1,*}", &["d/1", "d/*"]),
            ("{a,{b,c}d}", &["a", "bd", "cd"]),
            ("a{,b}", &["a", "ab"]),
            ("{a}", &["a"]),
            ("{a,b}{1,2}", &["a1", "a2", "b1", "b2"]),
            ("g{}", &["g"]),
            ("{a", &["{a"]),
            ("{a,{b,c}", &["{a,b", "{a,c"]),
            ("b}", &["b}"]),
            ("[{]a,b}", &["[{]a,b}"]),
            ("{[,],b}", &["[,]", "b"]),
        ];
        for (pattern, wanted) in cases {
            let found = expanded(pattern.as_bytes()).unwrap();
            let found: Vec<_> = found.iter().map(|one| std::str::from_utf8(one).unwrap()).collect();
            assert_eq!(found, wanted, "{pattern}");
        }
        let many = "{1,2,3,4,5,6,7,8,9,0}".repeat(9);
        assert_eq!(expanded(many.as_bytes()), None);
    }
}
