//! What messages hold besides text: pictures and sounds.

use std::sync::Arc;

use crate::digest::Digest;
use crate::stream::Stream;

/// Something in a message that is not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Media {
    /// A content part that exists already.
    Part {
        /// What it holds.
        kind: MediaKind,
        /// The part in the form of the OpenAI chat API; APIs of other forms
        /// get it rewritten. Shared, because rows of one file may hold the same
        /// megabytes.
        json: Arc<str>,
    },
    /// A picture of our own, drawn when it is sent.
    Picture(Picture),
}

/// What an API has to take for a piece of media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MediaKind {
    /// A picture whose bytes are in the request.
    Image,
    /// A picture that the server is to fetch.
    ImageAddress,
    /// A sound.
    Audio,
    /// A film.
    Video,
}

impl MediaKind {
    /// In words, plural.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Image => "images",
            Self::ImageAddress => "addresses of images",
            Self::Audio => "audio",
            Self::Video => "video",
        }
    }
}

/// A piece of media at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The byte of the message's text that it stands before.
    pub before: usize,
    /// What it is.
    pub media: Media,
}

/// A picture that is made of random numbers when it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Picture {
    /// Width and height in pixels.
    pub size: Size,
    /// How it is written.
    pub format: PictureFormat,
    /// The seed of its pixels.
    pub seed: u64,
    /// Which of the pictures of that seed: the request's index and the place
    /// among its pictures.
    pub number: u64,
}

/// Width and height of a picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// How a picture is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PictureFormat {
    /// JPEG at quality 75, as most photographs on the way to a server are.
    #[default]
    Jpeg,
    /// PNG with its rows stored, since noise cannot be compressed.
    Png,
}

impl PictureFormat {
    /// All formats.
    pub const ALL: &[Self] = &[Self::Jpeg, Self::Png];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "jpeg",
            Self::Png => "png",
        }
    }
}

/// Longest side of a picture that is drawn: JPEG can say no more.
pub const MAX_SIDE: u32 = 65_535;

/// Most pixels of one picture: 50 megapixels are 150 MB before encoding.
pub const MAX_PIXELS: u64 = 50_000_000;

/// Most pictures of one request.
pub const MAX_PICTURES: u32 = 255;

/// One size and how often it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// The size.
    pub size: Size,
    /// Its weight among the others; above 0.
    pub weight: f64,
}

/// The pictures that go with every prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Pictures {
    /// Fewest and most of one request; a whole number between them is drawn,
    /// each equally likely.
    pub count: (u32, u32),
    /// The sizes to draw from.
    pub buckets: Vec<Bucket>,
    /// How they are written.
    pub format: PictureFormat,
}

/// A rule that [`Pictures`] break.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PicturesError {
    /// The range is empty or goes too far.
    #[error("pictures of one request must be from 0 to {MAX_PICTURES}")]
    Count,
    /// Nothing to draw from.
    #[error("no size has a weight above 0")]
    NoBucket,
    /// A weight that is no number from 0 on.
    #[error("weights are numbers from 0 on")]
    Weight,
    /// A side of 0 pixels, or more than can be written.
    #[error("a picture has from 1 to {MAX_SIDE} pixels a side and at most {MAX_PIXELS} in all")]
    Size,
}

impl Pictures {
    /// vLLM's way to say how many: `base` items and a range of `ratio` around
    /// it, both ends rounded outwards, the upper one at most `limit`.
    pub fn vllm_count(base: u32, ratio: f64, limit: u32) -> (u32, u32) {
        let at = |share: f64| f64::from(base) * share;
        let high = (at(1.0 + ratio).ceil() as u32).min(limit);
        (((at(1.0 - ratio).floor()) as u32).min(high), high)
    }

    /// Checks the rules.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), PicturesError> {
        let (low, high) = self.count;
        if low > high || high > MAX_PICTURES {
            return Err(PicturesError::Count);
        }
        if self.buckets.iter().any(|bucket| !bucket.weight.is_finite() || bucket.weight < 0.0) {
            return Err(PicturesError::Weight);
        }
        if self.buckets.iter().all(|bucket| bucket.weight == 0.0) {
            return Err(PicturesError::NoBucket);
        }
        let fits = |Size { width, height }: Size| {
            (1..=MAX_SIDE).contains(&width)
                && (1..=MAX_SIDE).contains(&height)
                && u64::from(width) * u64::from(height) <= MAX_PIXELS
        };
        let all = self.buckets.iter().all(|bucket| fits(bucket.size));
        if all { Ok(()) } else { Err(PicturesError::Size) }
    }

    /// The pictures of request `index`: how many and of which sizes depends on
    /// the run's seed, their pixels on `pixels`, which is another number where
    /// a server's cache must not know them.
    pub(crate) fn of_request(&self, seed: u64, pixels: u64, index: u32) -> Vec<Picture> {
        let mut stream = Stream::numbered(seed, "pictures", u64::from(index));
        let (low, high) = self.count;
        let count = u64::from(low) + stream.below(u64::from(high - low) + 1);
        (0..count)
            .map(|place| Picture {
                size: self.draw(&mut stream),
                format: self.format,
                seed: pixels,
                number: u64::from(index) << 8 | place,
            })
            .collect()
    }

    fn draw(&self, stream: &mut Stream) -> Size {
        let total: f64 = self.buckets.iter().map(|bucket| bucket.weight).sum();
        let mut left = stream.unit() * total;
        let drawn = self.buckets.iter().find(|bucket| {
            left -= bucket.weight;
            left < 0.0
        });
        // Sums of floats may fall short of the last weight by a rounding.
        let last = self.buckets.iter().rfind(|bucket| bucket.weight > 0.0);
        drawn.or(last).expect("checked: one weight is above 0").size
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        let (low, high) = self.count;
        digest.raw(b"pictures").text(self.format.name());
        digest.number(u64::from(low)).number(u64::from(high));
        for Bucket { size, weight } in &self.buckets {
            digest.number(u64::from(size.width)).number(u64::from(size.height));
            digest.number(weight.to_bits());
        }
    }
}

impl Media {
    /// What an API has to take for it.
    pub const fn kind(&self) -> MediaKind {
        match self {
            Self::Part { kind, .. } => *kind,
            Self::Picture(_) => MediaKind::Image,
        }
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        match self {
            Self::Part { json, .. } => digest.raw(b"p").text(json),
            Self::Picture(picture) => {
                digest.raw(b"d").text(picture.format.name());
                digest.number(u64::from(picture.size.width));
                digest.number(u64::from(picture.size.height));
                digest.number(picture.seed).number(picture.number)
            }
        };
    }
}

#[cfg(test)]
mod tests;
