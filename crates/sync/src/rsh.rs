//! The command of `-e`: words as rsync splits them, and the options of ssh among them.

use anyhow::{Context, Result, bail};
use hikyaku_reach::{Family, SshOptions};

/// The options of ssh in the command of `-e`.
///
/// # Errors
///
/// There is no command, a quote is not closed, or an option of ssh is none that is known here.
pub(crate) fn ssh_options(command: &str) -> Result<SshOptions> {
    let all = words(command)?;
    let mut rest = all.iter().map(String::as_str);
    let program = rest.next().context("-e: no command")?;
    let mut ssh = SshOptions { program: Some(program.into()), ..SshOptions::default() };
    while let Some(word) = rest.next() {
        let Some((flag, value)) =
            word.split_at_checked(2).filter(|(flag, _)| flag.starts_with('-'))
        else {
            bail!(unknown(word));
        };
        if word[1..].chars().all(|letter| "46AqTxCav".contains(letter)) {
            for letter in word[1..].chars() {
                match letter {
                    '4' => ssh.family = Some(Family::V4),
                    '6' => ssh.family = Some(Family::V6),
                    'A' => ssh.forward_agent = true,
                    _ => {}
                }
            }
            continue;
        }
        let mut value = || {
            let value = Some(value).filter(|value| !value.is_empty()).or_else(|| rest.next());
            value.with_context(|| format!("-e: {flag} has no value"))
        };
        match flag {
            "-i" => ssh.identities.push(value()?.into()),
            "-F" => ssh.config = Some(value()?.into()),
            "-J" => ssh.jump = Some(value()?.into()),
            "-o" => ssh.options.push(value()?.into()),
            "-p" => {
                let port = value()?;
                let number = port.parse().ok().filter(|port| *port > 0);
                ssh.port = Some(number.with_context(|| format!("-e: -p {port} is no port"))?);
            }
            "-l" => ssh.options.push(format!("User={}", value()?).into()),
            "-c" => ssh.options.push(format!("Ciphers={}", value()?).into()),
            "-m" => ssh.options.push(format!("MACs={}", value()?).into()),
            _ => bail!(unknown(word)),
        }
    }
    Ok(ssh)
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
        let read = ssh_options("ssh -p 22 -4Cq -l me -c aes -J j -oA=b -i 'k 1' -F f").unwrap();
        let wanted = SshOptions {
            program: Some("ssh".into()),
            port: Some(22),
            family: Some(Family::V4),
            options: ["User=me", "Ciphers=aes", "A=b"].map(Into::into).to_vec(),
            jump: Some("j".into()),
            identities: vec!["k 1".into()],
            config: Some("f".into()),
            ..SshOptions::default()
        };
        assert_eq!(read, wanted);
        let bad = ["", "ssh -p", "ssh -p 0", "ssh -p x", "ssh host", "ssh -L 1:a:2", "ssh --x"];
        for bad in bad {
            assert!(ssh_options(bad).is_err(), "{bad}");
        }
    }
}
