//! Tests of the list of parts.

use super::*;

/// The program uses a library that has a build script, and a macro; a test of it uses something else.
fn graph() -> Graph {
    let package = |name: &str, kind: &str, foreign: bool| {
        json!({
            "id": name,
            "name": name,
            "version": "1.0.0",
            "license": "MIT/Apache-2.0",
            "source": foreign.then_some("registry"),
            "manifest_path": format!("src/{name}/Cargo.toml"),
            "targets": [{"kind": [kind]}],
        })
    };
    let arrow = |to: &str, kind: Option<&str>| json!({"pkg": to, "dep_kinds": [{"kind": kind}]});
    let metadata = json!({
        "packages": [
            package(ROOT, "bin", false),
            package("library", "lib", true),
            package("builder", "lib", true),
            package("macro", "proc-macro", true),
            package("tokens", "lib", true),
            package("tester", "lib", true),
        ],
        "resolve": {"nodes": [
            {"id": ROOT, "deps": [
                arrow("library", None), arrow("macro", None), arrow("tester", Some("dev")),
            ]},
            {"id": "library", "deps": [arrow("builder", Some("build"))]},
            {"id": "macro", "deps": [arrow("tokens", None)]},
        ]},
    });
    let lock = "[[package]]\nname = \"library\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n";
    Graph::read(metadata.to_string().as_bytes(), lock).unwrap()
}

#[test]
fn what_only_builds_the_program_is_told_apart() {
    let graph = graph();
    let parts: Vec<_> =
        graph.parts().into_iter().map(|(part, used)| (part.name.as_str(), used)).collect();
    assert_eq!(
        parts,
        [
            ("builder", Use::Builds),
            ("library", Use::Linked),
            ("macro", Use::Builds),
            ("tokens", Use::Builds),
        ]
    );
}

#[test]
fn the_document_names_versions_licences_and_checksums() {
    let text = graph().document(0).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    let library = &document["components"][1];
    assert_eq!(library["purl"], "pkg:cargo/library@1.0.0");
    assert_eq!(library["hashes"][0]["content"], "ab");
    assert_eq!(library["licenses"][0]["expression"], "MIT OR Apache-2.0");
    assert_eq!(library["scope"], "required");
    assert_eq!(document["metadata"]["timestamp"], "1970-01-01T00:00:00Z");
}

#[test]
fn every_dependency_is_a_component() {
    let text = graph().document(0).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    let references: Vec<&str> = document["components"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|component| component["bom-ref"].as_str())
        .collect();
    let arrows = document["dependencies"].as_array().unwrap();
    assert_eq!(arrows.len(), references.len() + 1);
    for arrow in arrows {
        for on in arrow["dependsOn"].as_array().unwrap() {
            assert!(references.contains(&on.as_str().unwrap()), "{on}");
        }
    }
}

#[test]
fn a_time_is_written_as_a_date() {
    for (time, date) in [
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_799, "2000-02-29T23:59:59Z"),
        (1_735_689_599, "2024-12-31T23:59:59Z"),
        (1_740_787_200, "2025-03-01T00:00:00Z"),
    ] {
        assert_eq!(timestamp(time), date);
    }
}
