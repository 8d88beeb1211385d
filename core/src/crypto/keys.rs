//! The configured keys, as read from their setting. What is made of them (sealing,
//! signing) is the neighbours' business.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Bytes of a key.
pub(super) const KEY_BYTES: usize = 32;

/// A key and its id.
pub(super) struct Key {
    pub(super) id: u16,
    pub(super) bytes: [u8; KEY_BYTES],
}

/// Reads keys of the form `id:base64`, separated by commas: the id a number from 0
/// to 65,535, the key 32 bytes. There is at least one.
///
/// # Errors
/// A sentence that says which key is wrong, without showing it.
pub(super) fn parse(text: &str) -> Result<Vec<Key>, String> {
    let mut keys: Vec<Key> = Vec::new();
    for (index, entry) in text.split(',').map(str::trim).enumerate() {
        let place = index + 1;
        let (id, key) = entry
            .split_once(':')
            .ok_or(format!("key {place} must have the form id:base64"))?;
        let id = id
            .parse::<u16>()
            .map_err(|_| format!("the id of key {place} must be a number from 0 to 65535"))?;
        let bytes = STANDARD
            .decode(key)
            .map_err(|_| format!("key {place} must be base64"))?;
        let bytes = bytes
            .try_into()
            .map_err(|_| format!("key {place} must be 32 bytes long"))?;
        if keys.iter().any(|other| other.id == id) {
            return Err(format!("two keys have the id {id}"));
        }
        keys.push(Key { id, bytes });
    }
    Ok(keys)
}
