//! Manifests, as far as the rules need them.

/// The sections of a `Cargo.toml` with the keys and values of each, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    sections: Vec<(String, Vec<(String, String)>)>,
}

impl Manifest {
    /// Reads the subset of TOML that manifests are written in: sections, and
    /// one key a line whose value may go over several lines in brackets.
    pub fn of(text: &str) -> Self {
        let mut sections: Vec<(String, Vec<(String, String)>)> = vec![(String::new(), Vec::new())];
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix('[').filter(|_| line.ends_with(']')) {
                let name = name.trim_matches(['[', ']']).to_owned();
                sections.push((name, Vec::new()));
            } else if let Some((key, value)) =
                line.split_once('=').filter(|_| !line.starts_with('#'))
            {
                let mut value = value.trim().to_owned();
                while open_brackets(&value) > 0
                    && let Some(next) = lines.next()
                {
                    value.push_str(next.trim());
                }
                if let Some((_, keys)) = sections.last_mut() {
                    keys.push((key.trim().trim_matches('"').to_owned(), value));
                }
            }
        }
        Self { sections }
    }

    /// True when there is a section of this name.
    pub fn has(&self, section: &str) -> bool {
        self.sections.iter().any(|(name, _)| name == section)
    }

    /// The value of a key as it is written, without its quotes.
    pub fn value(&self, section: &str, key: &str) -> Option<&str> {
        let keys = self.sections.iter().filter(|(name, _)| name == section);
        let mut keys = keys.flat_map(|(_, keys)| keys);
        keys.find(|(name, _)| name == key).map(|(_, value)| value.trim_matches('"'))
    }

    /// Names of the dependencies of the crate itself: what is linked into
    /// whatever uses it, for any platform and feature.
    pub fn dependencies(&self) -> Vec<&str> {
        self.named(|section| {
            section.ends_with("dependencies")
                && !section.ends_with("dev-dependencies")
                && !section.ends_with("build-dependencies")
                && !section.starts_with("workspace.")
        })
    }

    /// Names of all dependencies, those of tests and build scripts as well.
    pub fn all_dependencies(&self) -> Vec<&str> {
        self.named(|section| {
            section.ends_with("dependencies") && !section.starts_with("workspace.")
        })
    }

    /// Names in the root manifest's list of dependencies.
    pub fn workspace_dependencies(&self) -> Vec<&str> {
        self.named(|section| section == "workspace.dependencies")
    }

    fn named(&self, wanted: impl Fn(&str) -> bool) -> Vec<&str> {
        let mut names = Vec::new();
        for (section, keys) in &self.sections {
            if wanted(section) {
                // `name.workspace = true` is the dependency `name`.
                names.extend(keys.iter().map(|(key, _)| key.split('.').next().unwrap_or(key)));
            } else if let Some((before, name)) = section.rsplit_once('.')
                && wanted(before)
            {
                names.push(name);
            }
        }
        names
    }
}

fn open_brackets(value: &str) -> i32 {
    value.chars().map(|c| i32::from("[{".contains(c)) - i32::from("]}".contains(c))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keys_and_dependencies_are_found() {
        let manifest = Manifest::of(
            "[package]\nname = \"drive\"\n# note = 1\n[lints]\nworkspace = true\n\
             [dependencies]\nwire.workspace = true\ntokio = { workspace = true, features = [\n\
             \"rt\",\n\"net\"] }\n[dependencies.nix]\nversion = \"1\"\n\
             [target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n[dev-dependencies]\nfake.workspace = true\n",
        );
        assert_eq!(manifest.value("package", "name"), Some("drive"));
        assert_eq!(manifest.value("package", "# note"), None);
        assert_eq!(manifest.value("lints", "workspace"), Some("true"));
        assert!(manifest.has("lints") && !manifest.has("workspace"));
        assert_eq!(manifest.dependencies(), ["wire", "tokio", "nix", "libc"]);
        assert_eq!(manifest.all_dependencies(), ["wire", "tokio", "nix", "libc", "fake"]);
    }

    #[test]
    fn the_roots_list_is_no_dependency_of_its_own() {
        let root = Manifest::of("[workspace]\n[workspace.dependencies]\nbytes = \"1\"\n");
        assert_eq!(root.workspace_dependencies(), ["bytes"]);
        assert!(root.all_dependencies().is_empty());
    }
}
