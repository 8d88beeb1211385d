//! The bit positions of the filter. It is a blocked Bloom filter: all bits of one address
//! are in one 64-bit word, so that one read checks an address. Pure functions.

use crate::address::AddressHash;

/// Bits set for one address.
const BITS_PER_ADDRESS: u32 = 5;
/// The addresses per word that a filter is sized for: 16 bits for each.
const ADDRESSES_PER_WORD: u64 = 4;
/// The largest filter in words: 64 MiB, enough for 33 million addresses. More addresses
/// increase the rate of false positives.
const WORDS_MAX: u64 = 1 << 23;
/// Words of the header: see [`super`].
pub(super) const HEADER_WORDS: u32 = 3;

/// The size of a filter, which determines its bit positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FilterLayout {
    words: u32,
}

/// The bits of one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BitPosition {
    /// The index of the word after the header.
    pub(super) word: u32,
    pub(super) mask: u64,
}

impl FilterLayout {
    /// A filter sized for this many addresses.
    pub(super) fn for_addresses(count: u64) -> Self {
        let words = count.div_ceil(ADDRESSES_PER_WORD).clamp(1, WORDS_MAX);
        Self {
            words: u32::try_from(words).unwrap_or(u32::MAX),
        }
    }

    /// A filter of this many words. `None` if `words` is not positive.
    pub(super) fn of_words(words: i32) -> Option<Self> {
        let words = u32::try_from(words).ok().filter(|words| *words > 0)?;
        Some(Self { words })
    }

    /// The size in words without the header.
    pub(super) fn words(self) -> u32 {
        self.words
    }

    /// The number of addresses that the filter is sized for.
    pub(super) fn capacity(self) -> u64 {
        u64::from(self.words) * ADDRESSES_PER_WORD
    }

    /// The bits of an address. A SHA-256 is evenly distributed and needs no further hashing:
    /// the first eight bytes select the word, the next eight the bits, six bits of the hash
    /// for each.
    pub(super) fn position(self, hash: &AddressHash) -> BitPosition {
        let (first, second) = (part(hash, 0), part(hash, 8));
        let scaled = (u128::from(first) * u128::from(self.words)) >> 64;
        let bits = (0..BITS_PER_ADDRESS).map(|nth| 1_u64 << ((second >> (6 * nth)) & 63));
        BitPosition {
            word: u32::try_from(scaled).unwrap_or_default(),
            mask: bits.fold(0, |mask, bit| mask | bit),
        }
    }
}

impl BitPosition {
    /// Whether the filter's word contains all bits, so that the address may be suppressed.
    pub(super) fn matches(self, word: u64) -> bool {
        word & self.mask == self.mask
    }

    /// The offsets of the bits in the whole string. Redis counts from the highest bit of the
    /// first word.
    pub(super) fn offsets(self) -> impl Iterator<Item = u64> {
        let first = u64::from(HEADER_WORDS + self.word) * 64;
        (0..64_u64)
            .filter(move |bit| (self.mask >> (63 - bit)) & 1 == 1)
            .map(move |bit| first + bit)
    }
}

fn part(hash: &AddressHash, at: usize) -> u64 {
    let bytes = hash.0[at..at + 8].try_into();
    u64::from_be_bytes(bytes.expect("eight bytes are eight bytes"))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn hash(number: u32) -> AddressHash {
        AddressHash(Sha256::digest(number.to_be_bytes()).into())
    }

    fn filled(layout: FilterLayout, addresses: std::ops::Range<u32>) -> Vec<u64> {
        let mut words = vec![0_u64; layout.words() as usize];
        for number in addresses {
            let position = layout.position(&hash(number));
            words[position.word as usize] |= position.mask;
        }
        words
    }

    fn maybes(layout: FilterLayout, words: &[u64], addresses: std::ops::Range<u32>) -> u32 {
        let positions = addresses.map(|number| layout.position(&hash(number)));
        let maybes = positions.filter(|position| position.matches(words[position.word as usize]));
        u32::try_from(maybes.count()).unwrap()
    }

    #[test]
    fn a_million_addresses_are_all_found_with_few_false_positives() {
        const COUNT: u32 = 1_000_000;
        let layout = FilterLayout::for_addresses(u64::from(COUNT));
        let words = filled(layout, 0..COUNT);
        assert_eq!(maybes(layout, &words, 0..COUNT), COUNT);
        let false_positives = maybes(layout, &words, COUNT..COUNT + COUNT / 5);
        let rate = f64::from(false_positives) / f64::from(COUNT / 5);
        println!("{:.3} % of false_positives get a maybe", rate * 100.0);
        assert!(rate < 0.01, "{rate}");
    }

    #[test]
    fn a_filter_at_twice_its_capacity_still_rules_most_addresses_out() {
        const COUNT: u32 = 200_000;
        let layout = FilterLayout::for_addresses(u64::from(COUNT));
        let words = filled(layout, 0..2 * COUNT);
        assert_eq!(maybes(layout, &words, 0..2 * COUNT), 2 * COUNT);
        let false_positives = maybes(layout, &words, 2 * COUNT..3 * COUNT);
        let rate = f64::from(false_positives) / f64::from(COUNT);
        println!("{:.3} % of false_positives get a maybe", rate * 100.0);
        assert!(rate < 0.08, "{rate}");
    }

    #[test]
    fn offsets_and_masks_are_the_same_bits() {
        let layout = FilterLayout::for_addresses(1_000);
        for number in 0..1_000 {
            let position = layout.position(&hash(number));
            let first = u64::from(HEADER_WORDS + position.word) * 64;
            let from_offsets = position
                .offsets()
                .fold(0_u64, |mask, offset| mask | (1 << (63 - (offset - first))));
            assert_eq!(from_offsets, position.mask);
            assert!((1..=BITS_PER_ADDRESS).contains(&position.mask.count_ones()));
        }
    }

    #[test]
    fn sizes_have_bounds() {
        assert_eq!(FilterLayout::for_addresses(0).words(), 1);
        assert_eq!(FilterLayout::for_addresses(10_000).capacity(), 10_000);
        assert_eq!(
            u64::from(FilterLayout::for_addresses(u64::MAX).words()),
            WORDS_MAX
        );
        assert_eq!(FilterLayout::of_words(0), None);
        assert_eq!(FilterLayout::of_words(-1), None);
    }
}
