//! The version and the checksum of a Parquet file of ours.
//!
//! Both are strings in the footer's key-value metadata, where every Parquet
//! reader shows them. They are also found without a Parquet reader, as bytes,
//! so that a damaged file is refused before a decoder sees it. The checksum is
//! the CRC-32 of the whole file with the checksum's own eight digits as zeros.

use std::ops::Range;

use flate2::Crc;
use memchr::memmem;
use parquet::file::metadata::KeyValue;

/// What is written into one kind of file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seal {
    pub(crate) version_key: &'static str,
    pub(crate) checksum_key: &'static str,
    /// The version that this program writes and reads.
    pub(crate) version: &'static str,
}

/// Why a file is not whole, unchanged and of our version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Not a Parquet file, or only the beginning of one.
    NotParquet,
    /// A Parquet file of someone else's.
    Foreign,
    /// A layout that this program does not know.
    Version { found: String },
    /// The bytes are not those that were written.
    Checksum { expected: String, found: String },
}

const UNSEALED: &str = "00000000";

/// At both ends of a Parquet file.
const MAGIC: &[u8] = b"PAR1";

/// The footer's length as four bytes, and the magic.
const TAIL: usize = 8;

/// What Thrift's compact protocol puts between the key and the value of a
/// pair: "the next field, a string".
const NEXT_STRING: u8 = 0x18;

impl Seal {
    /// The metadata of a file whose checksum is not known yet.
    pub(crate) fn open(self) -> Vec<KeyValue> {
        [(self.version_key, self.version), (self.checksum_key, UNSEALED)]
            .map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()))
            .to_vec()
    }

    /// Puts the checksum into a file that was written with [`Self::open`]'s
    /// metadata.
    pub(crate) fn close(self, file: &mut [u8]) {
        let place = footer(file).and_then(|footer| value(file, footer, self.checksum_key));
        let place = place.expect("the footer holds the metadata that it was given");
        let checksum = checksum(file, &place);
        file[place].copy_from_slice(checksum.as_bytes());
    }

    /// The checksum of a whole and unchanged file of the version that we read.
    pub(crate) fn check(self, file: &[u8]) -> Result<String, Broken> {
        let footer = footer(file).ok_or(Broken::NotParquet)?;
        let version = value(file, footer.clone(), self.version_key).ok_or(Broken::Foreign)?;
        let version = String::from_utf8_lossy(&file[version]);
        if version != self.version {
            return Err(Broken::Version { found: version.into_owned() });
        }
        let place = value(file, footer, self.checksum_key).ok_or(Broken::Foreign)?;
        let expected = String::from_utf8_lossy(&file[place.clone()]).into_owned();
        let found = checksum(file, &place);
        if found == expected { Ok(found) } else { Err(Broken::Checksum { expected, found }) }
    }
}

fn footer(file: &[u8]) -> Option<Range<usize>> {
    if !file.starts_with(MAGIC) || !file.ends_with(MAGIC) {
        return None;
    }
    let end = file.len().checked_sub(TAIL)?;
    let length = u32::from_le_bytes(file.get(end..end + 4)?.try_into().ok()?);
    let start = end.checked_sub(usize::try_from(length).ok()?)?;
    (start >= MAGIC.len()).then_some(start..end)
}

/// Where the value of a key is. The last place counts, because the pairs come
/// behind the statistics, which hold text of other people.
fn value(file: &[u8], footer: Range<usize>, key: &str) -> Option<Range<usize>> {
    let start = footer.start + memmem::rfind(&file[footer.clone()], key.as_bytes())? + key.len();
    let &[next, length] = file.get(start..start + 2)?.first_chunk()?;
    let place = start + 2..start + 2 + usize::from(length);
    // A length of 128 and more takes two bytes; no value of ours is so long.
    (next == NEXT_STRING && length < 128 && place.end <= footer.end).then_some(place)
}

fn checksum(file: &[u8], place: &Range<usize>) -> String {
    let mut crc = Crc::new();
    crc.update(&file[..place.start]);
    place.clone().for_each(|_| crc.update(b"0"));
    crc.update(&file[place.end..]);
    format!("{:08x}", crc.sum())
}
