//! Normal and lognormal lengths.

use std::f64::consts::TAU;

use measure::Tokens;

use super::{LengthError, MAX_TOKENS, whole};
use crate::digest::Digest;
use crate::stream::Stream;

/// Draws outside of the bounds before the place between them is drawn evenly.
///
/// The middle lies between the bounds, so that draws fail so often only where
/// the bounds are a small part of one standard deviation apart, and there the
/// curve is flat: for a share of 10 % inside, 1 length in 850 is drawn so, from
/// a density that varies by 3 %.
const REDRAWS: u32 = 64;

/// Standard deviations above the middle where a distribution without `max`
/// ends: one draw in 10¹⁵ would lie above.
const REACH: f64 = 8.0;

/// A bell curve over lengths, or over their logarithms. A draw is rounded to
/// the next whole number; one outside of the bounds is drawn again, so that no
/// heap of requests lies at a bound, as there is where draws are clamped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bell {
    kind: Kind,
    min: u32,
    max: u32,
}

/// Lengths are `mean + std·z`, or `median·exp(sigma·z)`, with a standard normal
/// z. So ln(length) of a lognormal one has the mean ln(median) and the standard
/// deviation sigma.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Normal { mean: f64, std: f64 },
    Lognormal { median: f64, sigma: f64 },
}

impl Bell {
    /// Normal with this mean and standard deviation, from 1 token to eight
    /// standard deviations above the mean unless the bounds say otherwise.
    pub fn normal(
        mean: f64,
        std: f64,
        min: Option<u32>,
        max: Option<u32>,
    ) -> Result<Self, LengthError> {
        centre("mean", mean)?;
        width("std", std, f64::from(MAX_TOKENS))?;
        Self::within(Kind::Normal { mean, std }, min, max)
    }

    /// Lognormal with this median and this standard deviation of the natural
    /// logarithm; bounds as for [`Self::normal`].
    pub fn lognormal(
        median: f64,
        sigma: f64,
        min: Option<u32>,
        max: Option<u32>,
    ) -> Result<Self, LengthError> {
        centre("median", median)?;
        width("sigma", sigma, 10.0)?;
        Self::within(Kind::Lognormal { median, sigma }, min, max)
    }

    /// Lognormal with this mean and standard deviation of the length itself,
    /// before the bounds: sigma² = ln(1 + (std/mean)²), and the median is the
    /// mean divided by exp(sigma²/2).
    pub fn lognormal_of_mean(
        mean: f64,
        std: f64,
        min: Option<u32>,
        max: Option<u32>,
    ) -> Result<Self, LengthError> {
        centre("mean", mean)?;
        width("std", std, f64::from(MAX_TOKENS))?;
        let variance = (std / mean).powi(2).ln_1p();
        Self::lognormal(mean / (variance / 2.0).exp(), variance.sqrt(), min, max)
    }

    fn within(kind: Kind, min: Option<u32>, max: Option<u32>) -> Result<Self, LengthError> {
        let reach = kind.at(REACH).ceil().clamp(1.0, f64::from(MAX_TOKENS));
        let (min, max) = (min.unwrap_or(1), max.unwrap_or(reach as u32));
        let centre = kind.at(0.0);
        // The middle counts as it is rounded, since draws are rounded too.
        if !(f64::from(min)..=f64::from(max)).contains(&centre.round()) {
            return Err(LengthError::Bounds { centre, min, max });
        }
        Ok(Self { kind, min, max })
    }

    /// The distribution that a text names; `None` when it names neither.
    pub(super) fn read(text: &str) -> Option<Result<Self, LengthError>> {
        if let Some(rest) = text.strip_prefix("normal:") {
            return Some(parameters(rest, "normal", &["mean", "std"]).and_then(|given| {
                let (Some(mean), Some(std)) = (given.of("mean"), given.of("std")) else {
                    let known = "mean and std, as in normal:mean=512,std=64";
                    return Err(LengthError::Incomplete { kind: "normal", known });
                };
                Self::normal(mean, std, given.min, given.max)
            }));
        }
        let rest = text.strip_prefix("lognormal:")?;
        let given = parameters(rest, "lognormal", &["median", "sigma", "mean", "std"]);
        Some(given.and_then(|given| {
            let of = |name| given.of(name);
            match (of("median"), of("sigma"), of("mean"), of("std")) {
                (Some(median), Some(sigma), None, None) => {
                    Self::lognormal(median, sigma, given.min, given.max)
                }
                (None, None, Some(mean), Some(std)) => {
                    Self::lognormal_of_mean(mean, std, given.min, given.max)
                }
                _ => {
                    let known = "median and sigma, as in lognormal:median=512,sigma=0.6, or mean \
                                 and std";
                    Err(LengthError::Incomplete { kind: "lognormal", known })
                }
            }
        }))
    }

    pub(super) fn range(&self) -> (Tokens, Tokens) {
        (Tokens::new(self.min), Tokens::new(self.max))
    }

    pub(super) fn mean(&self) -> f64 {
        match self.kind {
            Kind::Normal { mean, .. } => mean,
            Kind::Lognormal { median, sigma } => median * (sigma * sigma / 2.0).exp(),
        }
    }

    pub(super) fn draw(&self, stream: &mut Stream) -> Tokens {
        for _ in 0..REDRAWS {
            let tokens = self.kind.at(stream.normal()).round();
            if (f64::from(self.min)..=f64::from(self.max)).contains(&tokens) {
                return Tokens::new(tokens as u32);
            }
        }
        let (low, high) =
            (self.kind.deviations(self.min, -0.5), self.kind.deviations(self.max, 0.5));
        let tokens = self.kind.at(low + (high - low) * stream.unit()).round();
        Tokens::new((tokens as u32).clamp(self.min, self.max))
    }

    pub(super) fn describe(&self) -> String {
        let Self { kind, min, max } = self;
        let kind = match kind {
            Kind::Normal { mean, std } => format!("normal:mean={mean},std={std}"),
            Kind::Lognormal { median, sigma } => format!("lognormal:median={median},sigma={sigma}"),
        };
        format!("{kind},min={min},max={max}")
    }

    pub(super) fn digest(&self, digest: &mut Digest) {
        match self.kind {
            Kind::Normal { mean, std } => digest.raw(b"n").float(mean).float(std),
            Kind::Lognormal { median, sigma } => digest.raw(b"g").float(median).float(sigma),
        };
        digest.number(u64::from(self.min)).number(u64::from(self.max));
    }
}

impl Kind {
    /// The length at so many standard deviations from the middle.
    fn at(self, z: f64) -> f64 {
        match self {
            Self::Normal { mean, std } => mean + std * z,
            Self::Lognormal { median, sigma } => median * (sigma * z).exp(),
        }
    }

    /// The standard deviations from the middle at which a length lies, moved by
    /// a part of a token.
    fn deviations(self, tokens: u32, part: f64) -> f64 {
        let tokens = f64::from(tokens) + part;
        match self {
            Self::Normal { mean, std } => (tokens - mean) / std,
            Self::Lognormal { median, sigma } => (tokens / median).ln() / sigma,
        }
    }
}

impl Stream {
    /// A standard normal draw (Box and Muller 1958, the cosine of the pair).
    /// Two draws of the stream each, and another program can check it.
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (TAU * self.unit()).cos()
    }
}

fn centre(name: &'static str, value: f64) -> Result<(), LengthError> {
    if (1.0..=f64::from(MAX_TOKENS)).contains(&value) {
        return Ok(());
    }
    Err(LengthError::Value { name, value, rule: "from 1 to 16777216" })
}

fn width(name: &'static str, value: f64, most: f64) -> Result<(), LengthError> {
    if value > 0.0 && value <= most {
        return Ok(());
    }
    let rule = if most == 10.0 { "above 0 and up to 10" } else { "above 0 and up to 16777216" };
    Err(LengthError::Value { name, value, rule })
}

/// What is written behind the name of a distribution.
struct Given {
    values: Vec<(&'static str, f64)>,
    min: Option<u32>,
    max: Option<u32>,
}

impl Given {
    fn of(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

fn parameters(
    text: &str,
    kind: &'static str,
    names: &[&'static str],
) -> Result<Given, LengthError> {
    let known = match kind {
        "normal" => "mean, std, min and max",
        _ => "median and sigma, or mean and std, and min and max",
    };
    let mut given = Given { values: Vec::new(), min: None, max: None };
    for item in text.split(',').map(str::trim) {
        let wrong = || LengthError::Parameter { item: item.to_owned(), kind, known };
        let (name, value) = item.split_once('=').ok_or_else(wrong)?;
        let (name, value) = (name.trim(), value.trim());
        let bound = match name {
            "min" => Some(&mut given.min),
            "max" => Some(&mut given.max),
            _ => None,
        };
        if let Some(bound) = bound {
            let tokens = whole(value).ok_or_else(wrong)??;
            if bound.replace(tokens.get()).is_some() {
                return Err(wrong());
            }
            continue;
        }
        let name = names.iter().find(|known| **known == name).ok_or_else(wrong)?;
        let value: f64 = value.parse().map_err(|_| wrong())?;
        if given.of(name).is_some() || !value.is_finite() {
            return Err(wrong());
        }
        given.values.push((name, value));
    }
    Ok(given)
}
