//! Mirrors that a server tells of: `Link` headers with `rel=duplicate` (RFC 8288, RFC 6249).

use hikyaku_forward::Scheme;
use hikyaku_http::{Head, Url};

/// Mirrors of one answer at most.
const MIRRORS_MAX: usize = 16;
/// The priority of a link that tells none (RFC 6249, section 3.1).
const PRIORITY_LAST: u32 = 999_999;

/// The mirrors of a file that an answer tells of, the preferred ones first, without those that are `known`. From a server of
/// `https` only mirrors of `https` are taken.
///
/// RFC 6249, section 6: a client uses them only with a digest of the whole file, since nobody vouches for them.
// fuzz: web
pub(crate) fn mirrors(head: &Head, known: &[Url]) -> Vec<Url> {
    let is_safe = known.iter().any(|url| url.origin.scheme == Scheme::Https);
    let mut found: Vec<(u32, Url)> = Vec::new();
    for (target, parameters) in head.all("link").flat_map(links) {
        let value =
            |name: &str| parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let mut relations = value("rel").into_iter().flat_map(|rel| rel.split_ascii_whitespace());
        let Ok(url) = Url::parse(target) else { continue };
        let is_new = !known.contains(&url) && found.iter().all(|(_, other)| *other != url);
        let is_allowed = !is_safe || url.origin.scheme == Scheme::Https;
        let is_mirror = relations.any(|relation| relation.eq_ignore_ascii_case("duplicate"));
        if is_mirror && is_new && is_allowed && url.login.is_none() {
            let priority = value("pri").and_then(|pri| pri.parse().ok());
            found.push((priority.unwrap_or(PRIORITY_LAST), url));
        }
    }
    found.sort_by_key(|(priority, _)| *priority);
    found.into_iter().take(MIRRORS_MAX).map(|(_, url)| url).collect()
}

/// A link: its target, and its parameters with their names in lower case.
type Link<'a> = (&'a str, Vec<(String, String)>);

/// The links of a header line: `<URL>; rel=duplicate; pri=1, <URL>; ...`. What follows a part that cannot be read is left out.
// fuzz: web
fn links(value: &str) -> Vec<Link<'_>> {
    let (mut links, mut rest) = (Vec::new(), value);
    while let Some(open) = rest.trim_start_matches([' ', '\t', ',']).strip_prefix('<') {
        let Some((target, after)) = open.split_once('>') else { break };
        let mut parameters = Vec::new();
        rest = after.trim_start();
        while let Some(parameter) = rest.strip_prefix(';') {
            let parameter = parameter.trim_start();
            let end = parameter.find(['=', ';', ',']).unwrap_or(parameter.len());
            let (name, after) = parameter.split_at(end);
            let (text, after) = match after.strip_prefix('=') {
                None => (String::new(), after),
                Some(after) => argument(after.trim_start()),
            };
            parameters.push((name.trim().to_ascii_lowercase(), text));
            rest = after.trim_start();
        }
        links.push((target.trim(), parameters));
    }
    links
}

/// The value of a parameter, a word or a quoted string, and what follows it.
fn argument(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (word, after) = text.split_at(text.find([';', ',']).unwrap_or(text.len()));
        return (word.trim().to_owned(), after);
    };
    let (mut value, mut letters) = (String::new(), quoted.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            letter => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_http::head_of;

    fn of(lines: &str, known: &str) -> Vec<String> {
        let text = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
        let head = head_of(text.as_bytes()).unwrap();
        let known = [Url::parse(known).unwrap()];
        mirrors(&head, &known).iter().map(|url| format!("{url}{}", url.target)).collect()
    }

    fn whole(url: &str) -> String {
        let url = Url::parse(url).unwrap();
        format!("{url}{}", url.target)
    }

    #[test]
    fn duplicates_are_mirrors_in_the_order_of_their_priority() {
        let lines = "Link: <http://c.example/f>; rel=duplicate, <http://b.example/f>; rel=\"x duplicate\"; pri=2\r\n\
                     Link: <http://a.example/f?a=1,2>; title=\"a, \\\"b;\"; pri=1; rel=Duplicate\r\n\
                     Link: <http://d.example/f.meta4>; rel=describedby, <http://e.example/f>; rel=duplicates\r\n";
        let want = ["http://a.example/f?a=1,2", "http://b.example/f", "http://c.example/f"];
        assert_eq!(of(lines, "http://x.example/f"), want.map(whole));
    }

    #[test]
    fn what_must_not_be_a_mirror_is_left_out() {
        for line in [
            "Link: <http://x.example/f>; rel=duplicate",
            "Link: <ftp://a.example/f>; rel=duplicate",
            "Link: </f>; rel=duplicate",
            "Link: <http://me:secret@a.example/f>; rel=duplicate",
            "Link: <http://a.example/f; rel=duplicate",
            "Link: http://a.example/f; rel=duplicate",
        ] {
            assert_eq!(of(&format!("{line}\r\n"), "http://x.example/f"), [""; 0], "{line}");
        }
        let lines =
            "Link: <http://a.example/f>; rel=duplicate, <https://b.example/f>; rel=duplicate\r\n";
        assert_eq!(of(lines, "https://x.example/f"), [whole("https://b.example/f")]);
        let many: String = (0..40)
            .map(|at| format!("Link: <http://m{at}.example/f>; rel=duplicate\r\n"))
            .collect();
        assert_eq!(of(&many, "http://x.example/f").len(), MIRRORS_MAX);
    }
}
