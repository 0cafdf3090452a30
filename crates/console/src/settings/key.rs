//! Settings that commands have.

/// A setting of a command, and how its text is read.
#[derive(Debug)]
pub struct Key<T: 'static> {
    /// Its name in the file.
    pub name: &'static str,
    /// The flag of the command line that overrides it.
    pub flag: &'static str,
    /// The value if nothing is set, for `hikyaku config show`. The command itself has the default.
    pub default: &'static str,
    /// What it means, in one line, for `hikyaku config list`.
    pub help: &'static str,
    /// Reads a value, or says what is wrong with it.
    pub read: fn(&str) -> Result<T, String>,
}

/// The settings of all commands of a program.
#[derive(Default)]
pub struct Keys(Vec<Setting>);

/// A key without the type of its value.
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) flag: &'static str,
    pub(super) default: &'static str,
    pub(super) help: &'static str,
    pub(super) check: Check,
}

/// Says what is wrong with a value, if anything is.
type Check = Box<dyn Fn(&str) -> Result<(), String>>;

impl Keys {
    /// Adds a setting. One that several commands have is added once; later additions of its name have no effect.
    #[must_use]
    pub fn with<T>(mut self, key: &'static Key<T>) -> Self {
        if self.find(key.name).is_none() {
            self.0.push(Setting {
                name: key.name,
                flag: key.flag,
                default: key.default,
                help: key.help,
                check: Box::new(|text| (key.read)(text).map(drop)),
            });
        }
        self
    }

    /// The error of a text as the value of a setting. `None` if the setting takes it, or if there is no such setting.
    pub fn refusal(&self, name: &str, text: &str) -> Option<String> {
        self.find(name).and_then(|setting| (setting.check)(text).err())
    }

    pub(super) fn find(&self, name: &str) -> Option<&Setting> {
        self.0.iter().find(|setting| setting.name == name)
    }

    /// The names, in the order of their addition.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|setting| setting.name)
    }

    pub(super) fn all(&self) -> &[Setting] {
        &self.0
    }
}
