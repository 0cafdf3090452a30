//! The files of Amazon's programs, `~/.aws/credentials` and `~/.aws/config`: sections of lines `NAME = VALUE`.

use std::collections::HashMap;

/// The values of one section. A section that is there twice counts as one.
// fuzz: none, the user's own words
pub(crate) fn section(text: &str, names: &[String]) -> Option<HashMap<String, String>> {
    let (mut values, mut is_it, mut is_there) = (HashMap::new(), false, false);
    for line in text.lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = bare.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default();
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            is_it = names.contains(&name);
            is_there |= is_it;
        } else if is_it
            && !line.starts_with([' ', '\t'])
            && let Some((name, value)) = bare.split_once('=')
        {
            // An indented line belongs to the value above it, and none of those is of interest here.
            values.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    is_there.then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_its_own_values() {
        let text = "# x\n[default]\naws_access_key_id = A\nregion=r1\n[profile  lab ]\nregion = r2\n\
                    s3 =\n  endpoint_url = nested\nendpoint_url = http://h:9000\n";
        let of = |name: &str| section(text, &[name.to_owned()]);
        let default = of("default").unwrap();
        assert_eq!((&*default["aws_access_key_id"], &*default["region"]), ("A", "r1"));
        let lab = of("profile lab").unwrap();
        assert_eq!((&*lab["region"], &*lab["endpoint_url"]), ("r2", "http://h:9000"));
        assert_eq!((of("lab"), default.contains_key("endpoint_url")), (None, false));
    }
}
