//! Who the user is and where the bucket is: from the environment, and from the files of Amazon's programs.

use crate::error::S3Error;
use crate::profile::section;
use std::collections::HashMap;
use std::path::PathBuf;

/// What is known of a bucket before it is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    pub(crate) login: Login,
    /// The region, if the user names one.
    pub(crate) region: Option<String>,
    /// The server, if it is not Amazon's: a URL without the bucket.
    pub(crate) endpoint: Option<String>,
    /// Whether the bucket's owner lets the reader pay.
    pub(crate) pays: Payer,
}

/// Who pays for requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Payer {
    Owner,
    Requester,
}

/// How the user is known to the server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    /// Keys that were found.
    Keys { id: String, secret: String, token: Option<String> },
    /// A public bucket.
    Anonymous,
    /// The machine gives keys when they are needed: web identity, a container, or EC2.
    Machine,
}

/// Without the secret.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Keys { id, .. } => f.debug_struct("Keys").field("id", id).finish_non_exhaustive(),
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Machine => f.write_str("Machine"),
        }
    }
}

/// Where settings are read from.
pub(crate) struct Origin<'a> {
    /// A variable of the environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file; `None` if there is none.
    pub(crate) file: &'a dyn Fn(&PathBuf) -> std::io::Result<Option<String>>,
}

impl Origin<'_> {
    /// A variable that says something.
    fn variable(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    fn is_set(&self, name: &str) -> bool {
        let is_true =
            |value: String| matches!(value.to_ascii_lowercase().as_str(), "true" | "1" | "yes");
        self.variable(name).is_some_and(is_true)
    }

    /// The section of the profile in one of Amazon's files.
    fn of_file(
        &self,
        (variable, name): (&str, &str),
        sections: &[String],
    ) -> Result<Option<HashMap<String, String>>, S3Error> {
        let home = || self.variable("HOME").map(|home| PathBuf::from(home).join(".aws").join(name));
        let Some(path) = self.variable(variable).map(PathBuf::from).or_else(home) else {
            return Ok(None);
        };
        match (self.file)(&path) {
            Ok(text) => Ok(text.and_then(|text| section(&text, sections))),
            Err(error) => {
                Err(S3Error::Setting { place: path.display().to_string(), why: error.to_string() })
            }
        }
    }
}

impl Settings {
    /// The settings for a bucket. `endpoint` is what the command line says.
    ///
    /// As in Amazon's own programs, keys of the environment go before those of the profile, and both before what the
    /// machine gives. `AWS_PROFILE` names the profile.
    pub(crate) fn find(
        bucket: &str,
        endpoint: Option<&str>,
        origin: &Origin<'_>,
    ) -> Result<Self, S3Error> {
        let named = origin.variable("AWS_PROFILE");
        let profile = named.clone().unwrap_or_else(|| "default".to_owned());
        let both = [profile.clone(), format!("profile {profile}")];
        let secrets = ("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let credentials = origin.of_file(secrets, &both[..1])?;
        let config = origin.of_file(("AWS_CONFIG_FILE", "config"), &both)?;
        if named.is_some() && credentials.is_none() && config.is_none() {
            let why =
                format!("there is no profile '{profile}' in ~/.aws/credentials or ~/.aws/config");
            return Err(S3Error::Setting { place: "AWS_PROFILE".to_owned(), why });
        }
        let of_files = |name: &str| {
            let in_file =
                |file: &Option<HashMap<String, String>>| file.as_ref()?.get(name).cloned();
            in_file(&credentials).or_else(|| in_file(&config)).filter(|value| !value.is_empty())
        };
        let region =
            origin.variable("AWS_REGION").or_else(|| origin.variable("AWS_DEFAULT_REGION"));
        let endpoint = endpoint
            .map(str::to_owned)
            .or_else(|| origin.variable("AWS_ENDPOINT_URL_S3"))
            .or_else(|| origin.variable("AWS_ENDPOINT_URL"))
            .or_else(|| of_files("endpoint_url"));
        let endpoint = endpoint.map(|url| checked(&url)).transpose()?;
        let pays = match origin.variable("AWS_REQUEST_PAYER") {
            Some(_) => Payer::Requester,
            None => Payer::Owner,
        };
        Ok(Self {
            login: login(bucket, origin, &of_files)?,
            region: region.or_else(|| of_files("region")),
            endpoint,
            pays,
        })
    }
}

fn login(
    bucket: &str,
    origin: &Origin<'_>,
    of_files: &dyn Fn(&str) -> Option<String>,
) -> Result<Login, S3Error> {
    if origin.is_set("AWS_SKIP_SIGNATURE") {
        return Ok(Login::Anonymous);
    }
    let (id, secret) = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY");
    match (origin.variable(id), origin.variable(secret)) {
        (Some(id), Some(secret)) => {
            let token = origin.variable("AWS_SESSION_TOKEN");
            return Ok(Login::Keys { id, secret, token });
        }
        (None, None) => {}
        (Some(_), None) => return Err(half(secret, id)),
        (None, Some(_)) => return Err(half(id, secret)),
    }
    let machine = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    if machine.iter().any(|name| origin.variable(name).is_some()) {
        return Ok(Login::Machine);
    }
    if let (Some(id), Some(secret)) =
        (of_files("aws_access_key_id"), of_files("aws_secret_access_key"))
    {
        return Ok(Login::Keys { id, secret, token: of_files("aws_session_token") });
    }
    for other in ["sso_session", "sso_start_url", "credential_process", "role_arn"] {
        if of_files(other).is_some() {
            let why = format!(
                "the profile logs in by {other}, which is not supported; \
                 try: eval \"$(aws configure export-credentials --format env)\""
            );
            return Err(S3Error::Setting { place: "~/.aws/config".to_owned(), why });
        }
    }
    match origin.is_set("AWS_EC2_METADATA_DISABLED") {
        true => Err(S3Error::NoCredentials(bucket.to_owned())),
        false => Ok(Login::Machine),
    }
}

fn half(missing: &str, set: &str) -> S3Error {
    S3Error::Setting { place: missing.to_owned(), why: format!("is not set, and {set} is") }
}

/// An address of a server, without a slash at its end.
fn checked(url: &str) -> Result<String, S3Error> {
    let url = url.trim_end_matches('/');
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_fine = |rest: &str| !rest.is_empty() && !rest.contains(['?', '#', '@', ' ', '%']);
    match rest {
        Some(rest) if is_fine(rest) => Ok(url.to_owned()),
        _ => Err(S3Error::Setting {
            place: format!("the endpoint '{url}'"),
            why: "expected https://HOST[:PORT] or http://HOST[:PORT]".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests;
