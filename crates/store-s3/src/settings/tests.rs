//! Which settings go before which.

use super::*;

/// The settings that these variables and files give.
fn find(
    endpoint: Option<&str>,
    variables: &[(&str, &str)],
    files: &[(&str, &str)],
) -> Result<Settings, S3Error> {
    let variable = |name: &str| {
        let found = variables.iter().find(|(other, _)| *other == name);
        found
            .map(|(_, value)| (*value).to_owned())
            .or_else(|| (name == "HOME").then(|| "/h".to_owned()))
    };
    let file = |path: &PathBuf| {
        let found = files.iter().find(|(other, _)| path.as_os_str() == *other);
        Ok(found.map(|(_, text)| (*text).to_owned()))
    };
    Settings::find("b", endpoint, &Origin { variable: &variable, file: &file })
}

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "env"), ("AWS_SECRET_ACCESS_KEY", "s")];
const FILE: (&str, &str) = (
    "/h/.aws/credentials",
    "[default]\naws_access_key_id=file\naws_secret_access_key=s\n[lab]\naws_access_key_id=lab\n\
     aws_secret_access_key=s\naws_session_token=t\n",
);

fn id(found: Result<Settings, S3Error>) -> String {
    match found.unwrap().login {
        Login::Keys { id, token, .. } => id + &token.unwrap_or_default(),
        other => format!("{other:?}"),
    }
}

#[test]
fn the_environment_goes_before_the_profile_and_the_profile_before_the_machine() {
    assert_eq!(id(find(None, &KEYS, &[FILE])), "env");
    assert_eq!(id(find(None, &[], &[FILE])), "file");
    assert_eq!(id(find(None, &[("AWS_PROFILE", "lab")], &[FILE])), "labt");
    assert_eq!(id(find(None, &[], &[])), "Machine");
    assert_eq!(id(find(None, &[("AWS_WEB_IDENTITY_TOKEN_FILE", "/t")], &[FILE])), "Machine");
    assert_eq!(id(find(None, &[("AWS_SKIP_SIGNATURE", "true")], &[FILE])), "Anonymous");
    let elsewhere = ("AWS_SHARED_CREDENTIALS_FILE", "/x");
    assert_eq!(id(find(None, &[elsewhere], &[("/x", FILE.1)])), "file");
}

#[test]
fn the_endpoint_of_the_command_line_goes_before_all_others() {
    let of_s3 = ("AWS_ENDPOINT_URL_S3", "http://s3:1");
    let of_all = ("AWS_ENDPOINT_URL", "http://all:2/");
    let config = ("/h/.aws/config", "[default]\nendpoint_url = http://file:3\nregion = there\n");
    let endpoint =
        |line, variables: &[(&str, &str)]| find(line, variables, &[config]).unwrap().endpoint;
    assert_eq!(endpoint(Some("https://line:4"), &[of_s3, of_all]).unwrap(), "https://line:4");
    assert_eq!(endpoint(None, &[of_s3, of_all]).unwrap(), "http://s3:1");
    assert_eq!(endpoint(None, &[of_all]).unwrap(), "http://all:2");
    assert_eq!(endpoint(None, &[]).unwrap(), "http://file:3");
    let region = |variables: &[(&str, &str)]| find(None, variables, &[config]).unwrap().region;
    assert_eq!(region(&[("AWS_REGION", "here")]).as_deref(), Some("here"));
    assert_eq!(region(&[]).as_deref(), Some("there"));
    for url in ["host:9000", "ftp://host", "https://", "http://a:b@host", "http://host/?x"] {
        assert!(find(Some(url), &KEYS, &[]).is_err(), "{url}");
    }
}

#[test]
fn what_cannot_work_is_said_with_what_to_do() {
    let why = |variables: &[(&str, &str)], files: &[(&str, &str)]| {
        find(None, variables, files).unwrap_err().to_string()
    };
    assert!(why(&KEYS[..1], &[]).contains("AWS_SECRET_ACCESS_KEY: is not set"));
    assert!(why(&[("AWS_PROFILE", "none")], &[FILE]).contains("no profile 'none'"));
    let sso = ("/h/.aws/config", "[default]\nsso_start_url = https://x\n");
    assert!(why(&[], &[sso]).contains("try: eval"));
    let nobody = find(None, &[("AWS_EC2_METADATA_DISABLED", "true")], &[]).unwrap_err();
    assert!(nobody.remedy().unwrap().contains("AWS_SKIP_SIGNATURE"));
}

#[test]
fn a_secret_is_not_shown() {
    let found = find(None, &[("AWS_ACCESS_KEY_ID", "env"), ("AWS_SECRET_ACCESS_KEY", "hush")], &[]);
    assert!(!format!("{:?}", found.unwrap()).contains("hush"));
}
