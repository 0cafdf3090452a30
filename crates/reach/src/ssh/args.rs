//! The options by which users say how ssh gets to another host: one set, with the same long names in all commands. A command
//! adds the letters of the program whose habits it has ([`Letters`]).

use super::{Family, SshOptions};
use clap::{Arg, Args, value_parser};
use hikyaku_console::Noise;
use std::ffi::OsString;

/// How ssh gets to another host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "ssh")]
pub struct SshArgs {
    /// Port of ssh on the other host
    #[arg(long, value_name = "PORT", value_parser = value_parser!(u16).range(1..))]
    ssh_port: Option<u16>,
    /// File with a private key; may be given several times
    #[arg(long, value_name = "FILE")]
    identity: Vec<OsString>,
    /// Hosts to log in through, separated by commas
    #[arg(long, value_name = "HOSTS")]
    jump: Option<OsString>,
    /// Configuration file of ssh
    #[arg(long, value_name = "FILE")]
    ssh_config: Option<OsString>,
    /// Option of ssh, as its -o takes it; may be given several times
    #[arg(long, value_name = "OPTION")]
    ssh_option: Vec<OsString>,
    /// Program in place of ssh
    #[arg(long = "ssh", value_name = "PROGRAM")]
    ssh_program: Option<OsString>,
}

/// The address family, of ssh and of connections to daemons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct FamilyArgs {
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "v6")]
    v4: bool,
    /// IPv6 only
    #[arg(short = '6')]
    v6: bool,
}

/// The options of ssh that scp and sftp have, with their letters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "ssh", mut_args(|arg| Letters::Scp.added(arg)))]
pub struct ScpArgs {
    #[command(flatten)]
    ssh: SshArgs,
    #[command(flatten)]
    family: FamilyArgs,
    /// Cipher of ssh. Data over UDP have their own
    #[arg(short = 'c', value_name = "CIPHER")]
    cipher_spec: Option<OsString>,
    /// Forward the agent
    #[arg(short = 'A')]
    agent: bool,
}

/// The letters that a command adds to the long names of [`SshArgs`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Letters {
    /// None: the letters have other meanings.
    None,
    /// scp(1).
    Scp,
    /// ssh(1), in which -S is another option.
    Ssh,
}

/// The options by their names in the program, as users type them: without letters, and with those of scp and of ssh.
const TYPED: [(&str, [&str; 3]); 6] = [
    ("ssh_port", ["--ssh-port", "-P", "-p"]),
    ("identity", ["--identity", "-i", "-i"]),
    ("jump", ["--jump", "-J", "-J"]),
    ("ssh_config", ["--ssh-config", "-F", "-F"]),
    ("ssh_option", ["--ssh-option", "-o", "-o"]),
    ("ssh_program", ["--ssh", "-S", "--ssh"]),
];

impl Letters {
    const fn typed(self, names: [&'static str; 3]) -> &'static str {
        let [long, scp, ssh] = names;
        match self {
            Self::None => long,
            Self::Scp => scp,
            Self::Ssh => ssh,
        }
    }

    /// The argument with its letter, if it is an option of [`SshArgs`] that has one.
    pub fn added(self, arg: Arg) -> Arg {
        let names = TYPED.iter().find(|(id, _)| arg.get_id() == *id).map(|(_, names)| *names);
        let letter = names.and_then(|names| self.typed(names).strip_prefix('-'));
        match letter.filter(|letter| !letter.starts_with('-')) {
            Some(letter) => arg.short(letter.chars().next()),
            None => arg,
        }
    }
}

impl SshArgs {
    /// These options, for ssh.
    pub fn options(&self) -> SshOptions {
        SshOptions {
            program: self.ssh_program.clone(),
            config: self.ssh_config.clone(),
            identities: self.identity.clone(),
            jump: self.jump.clone(),
            options: self.ssh_option.clone(),
            port: self.ssh_port,
            verbose: Noise::chosen().verbosity(),
            ..SshOptions::default()
        }
    }

    /// These options, for ssh, and those of `others` that they leave open.
    pub fn over(&self, others: SshOptions) -> SshOptions {
        let own = self.options();
        SshOptions {
            program: own.program.or(others.program),
            config: own.config.or(others.config),
            identities: [own.identities, others.identities].concat(),
            jump: own.jump.or(others.jump),
            options: [own.options, others.options].concat(),
            port: own.port.or(others.port),
            ..others
        }
    }

    /// Each option as it is typed in a command with these letters, and whether it is given.
    pub fn given(&self, letters: Letters) -> [(&'static str, bool); 6] {
        let given = [
            self.ssh_port.is_some(),
            !self.identity.is_empty(),
            self.jump.is_some(),
            self.ssh_config.is_some(),
            !self.ssh_option.is_empty(),
            self.ssh_program.is_some(),
        ];
        let mut is_given = given.into_iter();
        TYPED.map(|(_, names)| (letters.typed(names), is_given.next().unwrap_or_default()))
    }

    /// The port, if it is given.
    pub const fn port(&self) -> Option<u16> {
        self.ssh_port
    }
}

impl SshOptions {
    /// The options of [`SshArgs`] as another command of hikyaku takes them.
    pub fn long_words(&self) -> Vec<OsString> {
        let port = self.port.map(|port| OsString::from(port.to_string()));
        let one = [
            ("--ssh-port", &port),
            ("--jump", &self.jump),
            ("--ssh-config", &self.config),
            ("--ssh", &self.program),
        ];
        let one =
            one.into_iter().flat_map(|(name, value)| value.iter().map(move |value| (name, value)));
        let identities = self.identities.iter().map(|value| ("--identity", value));
        let options = self.options.iter().map(|value| ("--ssh-option", value));
        let all = one.chain(identities).chain(options);
        all.flat_map(|(name, value)| [name.into(), value.clone()]).collect()
    }
}

impl FamilyArgs {
    /// The family, if one is chosen.
    pub const fn family(self) -> Option<Family> {
        match (self.v4, self.v6) {
            (true, _) => Some(Family::V4),
            (_, true) => Some(Family::V6),
            _ => None,
        }
    }
}

impl ScpArgs {
    /// These options, for ssh.
    pub fn options(&self) -> SshOptions {
        SshOptions {
            family: self.family.family(),
            forward_agent: self.agent,
            cipher: self.cipher_spec.clone(),
            ..self.ssh.options()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};

    fn parsed(letters: Letters, words: &str) -> SshArgs {
        let command = SshArgs::augment_args(Command::new("x")).mut_args(|arg| letters.added(arg));
        command.clone().debug_assert();
        let matches = command.try_get_matches_from(["x"].into_iter().chain(words.split(' ')));
        SshArgs::from_arg_matches(&matches.unwrap()).unwrap()
    }

    #[test]
    fn letters_and_long_names_are_the_same_options() {
        let long = "--ssh-port 2 --identity a --identity b --jump h --ssh-config f --ssh-option o=1 --ssh s";
        let wanted = SshOptions {
            port: Some(2),
            identities: vec!["a".into(), "b".into()],
            jump: Some("h".into()),
            config: Some("f".into()),
            options: vec!["o=1".into()],
            program: Some("s".into()),
            ..SshOptions::default()
        };
        for (letters, words) in [
            (Letters::None, long),
            (Letters::Scp, long),
            (Letters::Scp, "-P 2 -i a -i b -J h -F f -o o=1 -S s"),
            (Letters::Ssh, "-p 2 -i a -i b -J h -F f -o o=1 --ssh s"),
        ] {
            let args = parsed(letters, words);
            assert_eq!(args.options(), wanted, "{words}");
            let again = wanted.long_words();
            let again: Vec<_> = again.iter().filter_map(|word| word.to_str()).collect();
            assert_eq!(parsed(letters, &again.join(" ")).options(), wanted);
            assert!(args.given(letters).iter().all(|(name, is_given)| {
                *is_given && (words.split(' ').any(|word| word == *name) || words == long)
            }));
        }
        assert!(SshArgs::default().given(Letters::None).iter().all(|(_, is_given)| !is_given));
    }
}
