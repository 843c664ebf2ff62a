//! Which family a sample belongs to: its name is the family's with an ending
//! that depends on what the family counts, and the TYPE line may be missing.

use std::collections::HashSet;

use super::{Kind, Part};

/// What a sample is to its family.
#[derive(Clone, Copy)]
pub(super) enum Role {
    Value,
    Bucket,
    Sum,
    Count,
    Created,
}

impl Role {
    /// The part, with its bound or quantile; none for an instant of creation.
    pub(super) const fn part(self, at: Option<f64>) -> Option<Part> {
        Some(match (self, at) {
            (Self::Created, _) => return None,
            (Self::Sum, _) => Part::Sum,
            (Self::Count, _) => Part::Count,
            (Self::Bucket, Some(bound)) => Part::Bucket(bound),
            (Self::Value, Some(at)) => Part::Quantile(at),
            (Self::Value | Self::Bucket, None) => Part::Value,
        })
    }
}

const ENDINGS: &[(&str, Role, &[Kind])] = &[
    ("_bucket", Role::Bucket, &[Kind::Histogram]),
    ("_sum", Role::Sum, &[Kind::Histogram, Kind::Summary]),
    ("_count", Role::Count, &[Kind::Histogram, Kind::Summary]),
    ("_gsum", Role::Sum, &[Kind::Histogram]),
    ("_gcount", Role::Count, &[Kind::Histogram]),
    ("_total", Role::Value, &[Kind::Counter]),
    ("_info", Role::Value, &[Kind::Info]),
];

/// The names of an exposition's samples: they show what a family without a TYPE
/// line is.
pub(super) struct Names<'n> {
    all: HashSet<&'n str>,
    with_buckets: HashSet<&'n str>,
    with_quantiles: HashSet<&'n str>,
}

impl<'n> Names<'n> {
    /// Of names, each with the bound or quantile that its labels gave.
    pub(super) fn of(samples: impl Iterator<Item = (&'n str, Option<f64>)>) -> Self {
        let (mut all, mut with_buckets, mut with_quantiles) =
            (HashSet::new(), HashSet::new(), HashSet::new());
        for (name, at) in samples {
            all.insert(name);
            if at.is_some() {
                match name.strip_suffix("_bucket") {
                    Some(base) => with_buckets.insert(base),
                    None => with_quantiles.insert(name),
                };
            }
        }
        Self { all, with_buckets, with_quantiles }
    }

    /// The family's name, its kind where no TYPE line gives one, and what the
    /// sample is to it. `declared` has the kind of a family that a comment names.
    pub(super) fn role<'a>(
        &self,
        name: &'a str,
        declared: impl Fn(&str) -> Option<Kind>,
    ) -> (&'a str, Kind, Role) {
        let kind = |base: &str| {
            let told = declared(base).filter(|kind| *kind != Kind::Unknown);
            told.unwrap_or_else(|| self.kind(base))
        };
        if let Some(base) = name.strip_suffix("_created")
            && self.counts(base, kind)
        {
            return (base, kind(base), Role::Created);
        }
        if declared(name).is_some_and(|kind| kind != Kind::Unknown) {
            return (name, Kind::Unknown, Role::Value);
        }
        for (ending, role, kinds) in ENDINGS {
            let Some(base) = name.strip_suffix(ending) else { continue };
            let kind = kind(base);
            if kinds.contains(&kind) {
                return (base, kind, *role);
            }
        }
        (name, self.kind(name), Role::Value)
    }

    /// Whether something of this name counts since an instant.
    fn counts(&self, base: &str, kind: impl Fn(&str) -> Kind) -> bool {
        let total = [base, "_total"].concat();
        matches!(kind(base), Kind::Counter | Kind::Histogram | Kind::Summary)
            || (self.all.contains(total.as_str()) && kind(&total) == Kind::Counter)
    }

    /// The kind of a family without a TYPE line.
    fn kind(&self, base: &str) -> Kind {
        let has = |ending: &str| self.all.contains([base, ending].concat().as_str());
        if self.with_buckets.contains(base) {
            Kind::Histogram
        } else if self.with_quantiles.contains(base) || (has("_sum") && has("_count")) {
            Kind::Summary
        } else if base.ends_with("_total") {
            Kind::Counter
        } else {
            Kind::Unknown
        }
    }
}
