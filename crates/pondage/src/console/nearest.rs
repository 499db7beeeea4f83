//! The word someone may have meant.

/// Longest word that is compared, in bytes; longer ones have no neighbour.
const WORD_BYTES_MAX: usize = 32;

/// The candidate with the fewest changed letters, when that is at most a third of them, rounded up.
/// Case does not matter.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() || word.len() > WORD_BYTES_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's distance, in bytes.
fn distance(left: &str, right: &str) -> usize {
    let right = right.as_bytes();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (above, letter) in left.bytes().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (place, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let words = ["pause", "resume", "reload", "reconnect", "shutdown"];
        assert_eq!(nearest("PUASE", words), Some("pause"));
        assert_eq!(nearest("PAUS", words), Some("pause"));
        assert_eq!(nearest("relaod", words), Some("reload"));
        assert_eq!(nearest("shutdwon", words), Some("shutdown"));
        assert_eq!(nearest("vacuum", words), None);
        assert_eq!(nearest("", words), None);
        assert_eq!(nearest(&"pause".repeat(100), words), None);
    }
}
