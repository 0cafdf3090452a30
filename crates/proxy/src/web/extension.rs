//! The browser extension: files that the user's own browser loads as they are ("load unpacked", "temporary add-on"). It
//! hands downloads of the named sites to the gateway, which asks the sites by HTTP/1.1.

use super::{Context, Result, Site};
use crate::page::Page;
use serde_json::json;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

const SCRIPT: &str = include_str!("../../page/extension.js");

/// Writes the extension to a directory, which only this user may read: the address of the gateway has its token.
pub(super) fn write(folder: &Path, page: &Page, sites: &[Site]) -> Result<()> {
    let context = || format!("cannot write the extension to {}", folder.display());
    DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(context)?;
    for (name, text) in files(&page.address(), sites) {
        let path = folder.join(name);
        // What was there is replaced: the addresses of the gateway may have changed.
        let _ = fs::remove_file(&path);
        let open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        open.and_then(|mut file| file.write_all(text.as_bytes())).with_context(context)?;
    }
    Ok(())
}

/// The files, for a gateway whose page has this address.
fn files(address: &str, sites: &[Site]) -> [(&'static str, String); 3] {
    let names: Vec<String> = sites.iter().map(Site::bare).collect();
    let patterns: Vec<String> = sites.iter().map(Site::pattern).collect();
    let mut hosts = patterns.clone();
    hosts.push("http://127.0.0.1/*".to_owned());
    let manifest = json!({
        "manifest_version": 3,
        "name": "hikyaku downloads",
        "description": "Hands downloads of chosen sites to the gateway of 'hikyaku web'.",
        "version": env!("CARGO_PKG_VERSION"),
        // Chromium takes the first, Firefox the second.
        "background": { "service_worker": "background.js", "scripts": ["background.js"] },
        "permissions": ["downloads", "cookies", "storage", "webRequest"],
        "host_permissions": hosts,
        "action": { "default_title": "hikyaku: hand downloads to the gateway, or do not" },
        "browser_specific_settings": {
            "gecko": { "id": "downloads@hikyaku.invalid", "strict_min_version": "121.0" },
        },
    });
    let settings = json!({ "address": address, "sites": names, "patterns": patterns });
    [
        ("manifest.json", format!("{manifest:#}\n")),
        ("settings.json", format!("{settings:#}\n")),
        ("background.js", SCRIPT.to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn an_extension_may_see_the_named_sites_and_the_gateway_only() {
        let sites =
            ["Data.example.org", "10.0.0.7", "2001:db8::1"].map(|site| site.parse().unwrap());
        let [(_, manifest), (_, settings), (_, script)] =
            files("http://127.0.0.1:5210/ab/", &sites);
        let manifest: Value = serde_json::from_str(&manifest).unwrap();
        let wanted = [
            "*://*.data.example.org/*",
            "*://10.0.0.7/*",
            "*://[2001:db8::1]/*",
            "http://127.0.0.1/*",
        ];
        assert_eq!(manifest["host_permissions"], json!(wanted));
        let settings: Value = serde_json::from_str(&settings).unwrap();
        assert_eq!(settings["sites"], json!(["data.example.org", "10.0.0.7", "2001:db8::1"]));
        assert_eq!(settings["address"], "http://127.0.0.1:5210/ab/");
        assert!(script.contains("settings.json"));
    }
}
