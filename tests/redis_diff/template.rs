//! A line of grammar and the commands it stands for.
//!
//! `SET <s> <v> [(NX|XX)] {GET}`: words as they are, `<name>` for a word of [`Dice::word`], `[ ]`
//! for what may be left out, `(a|b)` for one of several, `{ }` for one to three times. A `!` in
//! front keeps the words as the line says: no mistake is made on purpose.

use crate::dice::Dice;

#[derive(Clone, Debug)]
enum Part {
    Word(String),
    Name(String),
    Maybe(Vec<Part>),
    OneOf(Vec<Vec<Part>>),
    Repeat(Vec<Part>),
}

#[derive(Clone, Debug)]
pub struct Template {
    rigid: bool,
    parts: Vec<Part>,
}

const MISTAKES_PERCENT: usize = 7;

impl Template {
    /// Panics for a line that is not well formed.
    pub fn new(line: &str) -> Template {
        let (rigid, text) = match line.strip_prefix('!') {
            Some(text) => (true, text),
            None => (false, line),
        };
        let mut rest = text;
        let parts = sequence(&mut rest);
        assert!(rest.is_empty() && !parts.is_empty(), "{line:?}: {rest:?} is left");
        Template { rigid, parts }
    }

    pub fn command(&self, dice: &mut Dice) -> Vec<Vec<u8>> {
        let mut words = Vec::new();
        fill(&self.parts, dice, &mut words);
        if !self.rigid && dice.chance(MISTAKES_PERCENT) {
            mistake(&mut words, dice);
        }
        if dice.chance(10) {
            words[0].make_ascii_lowercase();
        }
        words
    }
}

fn sequence(rest: &mut &str) -> Vec<Part> {
    let mut parts = Vec::new();
    loop {
        *rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return parts;
        };
        match first {
            ']' | '}' | ')' | '|' => return parts,
            '[' => parts.push(Part::Maybe(group(rest, ']'))),
            '{' => parts.push(Part::Repeat(group(rest, '}'))),
            '(' => {
                *rest = &rest[1..];
                let mut choices = vec![sequence(rest)];
                while let Some(more) = rest.strip_prefix('|') {
                    *rest = more;
                    choices.push(sequence(rest));
                }
                *rest = rest.strip_prefix(')').unwrap_or_else(|| panic!("`)` before {rest:?}"));
                parts.push(Part::OneOf(choices));
            }
            '<' => {
                let (name, after) = rest[1..].split_once('>').expect("`>`");
                parts.push(Part::Name(name.to_owned()));
                *rest = after;
            }
            _ => {
                let end = rest.find(|c: char| " []{}()|<".contains(c)).unwrap_or(rest.len());
                parts.push(Part::Word(rest[..end].to_owned()));
                *rest = &rest[end..];
            }
        }
    }
}

fn group(rest: &mut &str, close: char) -> Vec<Part> {
    *rest = &rest[1..];
    let parts = sequence(rest);
    *rest = rest.strip_prefix(close).unwrap_or_else(|| panic!("`{close}` before {rest:?}"));
    parts
}

fn fill(parts: &[Part], dice: &mut Dice, words: &mut Vec<Vec<u8>>) {
    for part in parts {
        match part {
            Part::Word(text) => words.push(text.as_bytes().to_vec()),
            Part::Name(name) => words.push(dice.word(name)),
            Part::Maybe(inner) => {
                if dice.chance(40) {
                    fill(inner, dice, words);
                }
            }
            Part::OneOf(choices) => {
                let choice = dice.below(choices.len());
                fill(&choices[choice], dice, words);
            }
            Part::Repeat(inner) => {
                for _ in 0..=dice.below(3) {
                    fill(inner, dice, words);
                }
            }
        }
    }
}

/// One word too few, too many, wrong, or in the wrong place. The command's name stays.
fn mistake(words: &mut Vec<Vec<u8>>, dice: &mut Dice) {
    if words.len() == 1 {
        words.push(dice.junk());
        return;
    }
    let at = 1 + dice.below(words.len() - 1);
    match dice.below(6) {
        0 => drop(words.remove(at)),
        1 => words.truncate(at),
        2 => words.insert(at, dice.junk()),
        3 => words.push(dice.junk()),
        4 => {
            let other = 1 + dice.below(words.len() - 1);
            words.swap(at, other);
        }
        _ => words[at] = dice.junk(),
    }
}

#[test]
fn a_line_gives_what_it_says() {
    let template = Template::new("!A <c> [B (C|D <c>)] {E}");
    let mut dice = Dice::new(1);
    for _ in 0..100 {
        let words = template.command(&mut dice);
        let text: Vec<String> =
            words.iter().map(|word| String::from_utf8_lossy(word).to_uppercase()).collect();
        assert_eq!(text[0], "A");
        assert!(text[1].parse::<u8>().is_ok());
        assert_eq!(text.last().map(String::as_str), Some("E"));
        assert_eq!(text.contains(&"B".to_owned()), text.iter().any(|w| w == "C" || w == "D"));
    }
}
