//! Signing policies (`NAME.signing_policy` beside the certificate of an authority): which names an authority may sign.
//!
//! ```text
//! access_id_CA  X509   '/O=Some Grid/CN=Some Authority'
//! pos_rights    globus CA:sign
//! cond_subjects globus '"/O=Some Grid/*" "/O=Another Grid/*"'
//! ```
//!
//! A line that cannot be parsed invalidates the file and its authority, because it might be a restriction.

/// The policies of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Policy(Vec<Rule>);

/// The names that one authority may sign.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Rule {
    authority: String,
    /// It may sign at all.
    may_sign: bool,
    /// Patterns: `*` is any text.
    subjects: Vec<String>,
}

impl Policy {
    /// Reads a file. `None` if a line of it is not understood.
    // fuzz: none, the administrator's own file
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rules: Vec<Rule> = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, rest) = line.split_once(char::is_whitespace)?;
            let (kind, value) = rest.trim_start().split_once(char::is_whitespace)?;
            let value = value.trim();
            match (key, kind) {
                ("access_id_CA", "X509") => {
                    let authority = usual(unquoted(value));
                    rules.push(Rule { authority, may_sign: false, subjects: Vec::new() });
                }
                ("pos_rights", "globus") if unquoted(value) == "CA:sign" => {
                    rules.last_mut()?.may_sign = true;
                }
                ("cond_subjects", "globus") => {
                    rules.last_mut()?.subjects.extend(patterns(value));
                }
                _ => return None,
            }
        }
        Some(Self(rules))
    }

    /// Whether `authority` may sign a certificate for `subject`. Both are names on one line.
    pub(super) fn permits(&self, authority: &str, subject: &str) -> bool {
        let (authority, subject) = (usual(authority), usual(subject));
        let is_meant = |rule: &&Rule| rule.may_sign && rule.authority == authority;
        let mut patterns = self.0.iter().filter(is_meant).flat_map(|rule| &rule.subjects);
        patterns.any(|pattern| matches(pattern, &subject))
    }
}

/// The patterns of a value: one in single quotes, or several in double quotes within them.
fn patterns(value: &str) -> Vec<String> {
    let inner = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
    let inner = inner.unwrap_or(value);
    match inner.contains('"') {
        true => inner.split('"').skip(1).step_by(2).map(usual).collect(),
        false => vec![usual(inner)],
    }
}

fn unquoted(value: &str) -> &str {
    let within = |quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    within('\'').or_else(|| within('"')).unwrap_or(value)
}

/// A name with the types of attributes as OpenSSL writes them today, as files have those of its first versions as well.
/// Globus does not look at the case of letters.
fn usual(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let name = name.replace("/email=", "/emailaddress=").replace("/e=", "/emailaddress=");
    name.replace("/userid=", "/uid=")
}

/// Whether a text is what a pattern means.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTHORITY: &str = "/O=Grid/CN=CA";

    fn permits(subjects: &str, subject: &str) -> bool {
        let text = format!(
            "# a comment\n\n access_id_CA  X509  '{AUTHORITY}'\npos_rights\tglobus CA:sign\n\
             cond_subjects globus {subjects}\n"
        );
        Policy::parse(&text).unwrap().permits(AUTHORITY, subject)
    }

    #[test]
    fn a_name_is_signed_if_a_pattern_means_it() {
        let cases = [
            ("'\"/O=Grid/*\"'", "/O=Grid/CN=a", true),
            ("'\"/O=Other/*\" \"/O=Grid/*\"'", "/O=Grid/CN=a", true),
            ("'/O=Grid/*'", "/O=Grid/CN=a", true),
            ("\"/O=Grid/CN=a\"", "/O=Grid/CN=a", true),
            ("'\"/O=Grid/CN=a\"'", "/O=Grid/CN=ab", false),
            ("'\"/O=Other/*\"'", "/O=Grid/CN=a", false),
            ("'\"/O=Grid/*/CN=x*\"'", "/O=Grid/OU=b/CN=xyz", true),
            ("'\"/O=Grid/*/CN=x*\"'", "/O=Grid/OU=b/CN=y", false),
            ("'\"*\"'", "/C=X", true),
            ("''", "/C=X", false),
            ("'\"/o=GRID/*\"'", "/O=Grid/CN=a", true),
            ("'\"/O=Grid/CN=?\"'", "/O=Grid/CN=a", false),
            ("'\"/O=Grid/Email=a@b\"'", "/O=Grid/emailAddress=a@b", true),
        ];
        for (subjects, subject, want) in cases {
            assert_eq!(permits(subjects, subject), want, "{subjects} {subject}");
        }
    }

    #[test]
    fn what_does_not_permit_forbids() {
        let parse =
            |text: &str| Policy::parse(text).map(|policy| policy.permits(AUTHORITY, "/C=X"));
        let id = format!("access_id_CA X509 '{AUTHORITY}'\n");
        assert_eq!(parse(""), Some(false));
        assert_eq!(parse(&format!("{id}cond_subjects globus '\"*\"'\n")), Some(false), "no right");
        assert_eq!(parse(&format!("{id}pos_rights globus CA:sign\n")), Some(false), "no name");
        let of_other =
            "access_id_CA X509 '/CN=x'\npos_rights globus CA:sign\ncond_subjects globus '*'\n";
        assert_eq!(parse(of_other), Some(false), "another authority");
        assert_eq!(parse(&format!("{of_other}{id}")), Some(false));
        for line in ["neg_rights globus CA:sign", "pos_rights globus CA:revoke", "nonsense"] {
            assert_eq!(parse(&format!("{id}{line}\n")), None, "{line}");
        }
    }
}
