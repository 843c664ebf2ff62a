//! Files whose bytes were changed and whose checksum is right again: what lies
//! behind the checksum is only reached by them.

/// Puts the right checksum into changed bytes: CRC-32 of the file with the digits
/// behind `key` as zeros. Bytes whose footer no longer holds one stay as they are.
pub(crate) fn reseal(mut file: Vec<u8>, key: &[u8]) -> Vec<u8> {
    let place = file.windows(key.len()).rposition(|window| window == key);
    let Some(place) = place.filter(|place| place + key.len() + 10 <= file.len()) else {
        return file;
    };
    let digits = place + key.len() + 2..place + key.len() + 10;
    file[digits.clone()].fill(b'0');
    let mut crc = flate2::Crc::new();
    crc.update(&file);
    file[digits].copy_from_slice(format!("{:08x}", crc.sum()).as_bytes());
    file
}
