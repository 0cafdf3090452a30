//! The command of `-e`: words as rsync splits them, and the options of ssh among them.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;

/// What `-e` says, as `hikyaku cp` and `hikyaku sftp` take it.
///
/// # Errors
///
/// There is no command, a quote is not closed, or an option of ssh is none that is known here.
pub(crate) fn ssh_words(command: &str) -> Result<Vec<OsString>> {
    let all = words(command)?;
    let mut rest = all.iter().map(String::as_str);
    let mut words: Vec<OsString> = vec!["-S".into(), rest.next().context("-e: no command")?.into()];
    while let Some(word) = rest.next() {
        let Some((flag, value)) =
            word.split_at_checked(2).filter(|(flag, _)| flag.starts_with('-'))
        else {
            bail!(unknown(word));
        };
        if word[1..].chars().all(|letter| "46AqTxCav".contains(letter)) {
            let kept = word[1..].chars().filter(|letter| "46A".contains(*letter));
            words.extend(kept.map(|letter| OsString::from(format!("-{letter}"))));
            continue;
        }
        let mut value = || {
            let value = Some(value).filter(|value| !value.is_empty()).or_else(|| rest.next());
            value.with_context(|| format!("-e: {flag} has no value"))
        };
        match flag {
            "-i" | "-F" | "-J" | "-o" => words.extend([flag.into(), value()?.into()]),
            "-p" => words.extend(["-P".into(), value()?.into()]),
            "-l" => words.extend(["-o".into(), format!("User={}", value()?).into()]),
            "-c" => words.extend(["-o".into(), format!("Ciphers={}", value()?).into()]),
            "-m" => words.extend(["-o".into(), format!("MACs={}", value()?).into()]),
            _ => bail!(unknown(word)),
        }
    }
    Ok(words)
}

fn unknown(word: &str) -> String {
    format!("-e: '{word}' is not known; -4 -6 -A -p -l -i -F -J -c -m -o are")
}

/// Splits at blanks. Quotes of either kind keep blanks; within them two of their kind are one (rsync(1), "-e").
fn words(command: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut open) = (Vec::new(), None::<String>, None::<char>);
    let mut letters = command.chars().peekable();
    while let Some(letter) = letters.next() {
        match open {
            Some(quote) if letter == quote => match letters.next_if_eq(&quote) {
                Some(_) => word.get_or_insert_default().push(quote),
                None => open = None,
            },
            None if matches!(letter, '\'' | '"') => {
                open = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if let Some(quote) = open {
        bail!("-e: a {quote} is not closed");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_by_rsync() {
        let cases: [(&str, &[&str]); 8] = [
            ("ssh  -F   f", &["ssh", "-F", "f"]),
            ("ssh -F '/with blank/f'", &["ssh", "-F", "/with blank/f"]),
            ("ssh -o \"ProxyCommand a b\" x", &["ssh", "-o", "ProxyCommand a b", "x"]),
            ("ssh -oProxyCommand='a \"b\" c'", &["ssh", "-oProxyCommand=a \"b\" c"]),
            ("ssh 'it''s' \"a\"\"b\"", &["ssh", "it's", "a\"b"]),
            (r"ssh a\ b", &["ssh", "a\\", "b"]),
            ("ssh ''", &["ssh", ""]),
            (" ", &[]),
        ];
        for (command, wanted) in cases {
            assert_eq!(words(command).unwrap(), wanted, "{command}");
        }
        assert!(words("ssh 'a").is_err() && words("ssh \"a'").is_err());
    }

    #[test]
    fn options_of_ssh_are_translated() {
        let said = |command: &str| ssh_words(command).map(|words| words.join("|".as_ref()));
        let told = said("ssh -p 22 -4Cq -l me -c aes -J j -oA=b -i 'k 1'").unwrap();
        assert_eq!(told, "-S|ssh|-P|22|-4|-o|User=me|-o|Ciphers=aes|-J|j|-o|A=b|-i|k 1");
        for bad in ["", "ssh -p", "ssh host", "ssh -L 1:a:2", "ssh --x"] {
            assert!(said(bad).is_err(), "{bad}");
        }
    }
}
