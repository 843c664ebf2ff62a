//! The version and the checksum of a file of rows.
//!
//! Both are strings in the footer's key-value metadata, where every Parquet
//! reader shows them. They are also found without a Parquet reader, as bytes,
//! so that a damaged file is refused before a decoder sees it. The checksum is
//! the CRC-32 of the whole file with the checksum's own eight digits as zeros.

use std::ops::Range;

use flate2::Crc;
use memchr::memmem;
use parquet::file::metadata::KeyValue;

use super::{RowsError, VERSION};

const VERSION_KEY: &str = "goodput.rows.version";
const CHECKSUM_KEY: &str = "goodput.rows.crc32";
const UNSEALED: &str = "00000000";

/// At both ends of a Parquet file.
const MAGIC: &[u8] = b"PAR1";

/// The footer's length as four bytes, and the magic.
const TAIL: usize = 8;

/// What Thrift's compact protocol puts between the key and the value of a
/// pair: "the next field, a string".
const NEXT_STRING: u8 = 0x18;

/// The metadata of a file whose checksum is not known yet.
pub(super) fn open(version: &str) -> Vec<KeyValue> {
    [(VERSION_KEY, version), (CHECKSUM_KEY, UNSEALED)]
        .map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()))
        .to_vec()
}

/// Puts the checksum into a file that was written with [`open`]'s metadata.
pub(super) fn close(file: &mut [u8]) {
    let place = footer(file).and_then(|footer| value(file, footer, CHECKSUM_KEY));
    let place = place.expect("the footer holds the metadata that it was given");
    let checksum = checksum(file, &place);
    file[place].copy_from_slice(checksum.as_bytes());
}

/// The checksum of whole and unchanged rows of the version that we read.
pub(super) fn check(file: &[u8]) -> Result<String, RowsError> {
    let footer = footer(file).ok_or(RowsError::NotParquet)?;
    let version = value(file, footer.clone(), VERSION_KEY).ok_or(RowsError::NotRows)?;
    let version = String::from_utf8_lossy(&file[version]);
    if version != VERSION {
        return Err(RowsError::Version { found: version.into_owned() });
    }
    let place = value(file, footer, CHECKSUM_KEY).ok_or(RowsError::NotRows)?;
    let expected = String::from_utf8_lossy(&file[place.clone()]).into_owned();
    let found = checksum(file, &place);
    if found == expected { Ok(found) } else { Err(RowsError::Checksum { expected, found }) }
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
