//! Statements that nobody would write.

use crate::dice::Dice;

/// Mostly one statement, with odd spacing.
pub fn statement(dice: &mut Dice) -> String {
    let mut tokens = Tokens { dice, text: String::new(), budget: 60 };
    match tokens.dice.roll(6) {
        0 => tokens.insert(),
        1 => tokens.update(),
        2 => tokens.put("delete from t where").expression(3),
        3 => tokens.put("with w as (").select(2).put(")").select(2),
        _ => tokens.select(3),
    };
    if tokens.dice.roll(4) == 0 {
        tokens.put(";");
    }
    tokens.text
}

/// Tokens in no order.
pub fn heap(dice: &mut Dice) -> String {
    let mut tokens = Tokens { dice, text: String::new(), budget: 0 };
    tokens.put("select");
    for _ in 0..tokens.dice.roll(12) {
        let token = tokens.dice.one_of(&[
            "1",
            "-",
            "-1",
            "+",
            "::",
            "int",
            "'a'",
            "''",
            "'",
            "\"",
            "a",
            "e",
            "n",
            "u&",
            ".",
            ".5",
            "1.",
            "e5",
            "$1",
            "$",
            "$$",
            "(",
            ")",
            "[",
            "]",
            ",",
            "*",
            "/",
            "/*",
            "*/",
            "--",
            "\n",
            ";",
            "=",
            "<",
            ">",
            "@",
            "and",
            "between",
            "as",
            "from",
            "t",
            "0x1",
            "_",
            "9999999999",
            "2147483648",
            "float",
            "\\",
            ":",
            ":=",
            "limit",
            "collate",
            "^",
            "not",
            "in",
        ]);
        tokens.put(token);
    }
    tokens.text
}

struct Tokens<'a> {
    dice: &'a mut Dice,
    text: String,
    /// Nodes to come, so that no statement gets long.
    budget: usize,
}

const OPERATORS: [&str; 22] = [
    "=",
    "<>",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "||",
    "->",
    "->>",
    "@>",
    "and",
    "or",
    "like",
    "is distinct from",
    "operator(pg_catalog.+)",
];

const LITERALS: [&str; 18] = [
    "1",
    "0",
    "-1",
    "- 1",
    "2147483647",
    "-2147483648",
    "2147483648",
    "- 2147483648",
    "9223372036854775808",
    "-9223372036854775808",
    "1.5",
    "-.5",
    "2.",
    "1e10",
    "''",
    "'a''b'",
    "'\u{e9}'",
    "007",
];

impl Tokens<'_> {
    /// Words one after the other, with something in between that makes no difference; rarely
    /// with nothing.
    fn put(&mut self, words: &str) -> &mut Self {
        for word in words.split(' ') {
            // Two words without a gap are one: rarely.
            let in_word = |letter: char| letter.is_alphanumeric() || letter == '_';
            let joins = self.text.ends_with(in_word) && word.starts_with(in_word);
            let gap = match self.dice.roll(if joins { 100 } else { 12 }) {
                0 => "",
                1 if !joins => "",
                2 => "\n",
                3 => " /* a ' ; */ ",
                4 => "/**/",
                5 => " -- b \" ;\n",
                6 => "\t ",
                _ => " ",
            };
            self.text.push_str(gap);
            self.text.push_str(word);
        }
        self
    }

    fn one_of(&mut self, choices: &[&str]) -> &mut Self {
        let choice = self.dice.one_of(choices);
        self.put(choice)
    }

    fn literal(&mut self) -> &mut Self {
        self.one_of(&LITERALS)
    }

    fn column(&mut self) -> &mut Self {
        self.one_of(&["a", "b", "t.a", "\"C d\"", "t.between", "t.and", "s.t.x"])
    }

    fn select(&mut self, depth: usize) -> &mut Self {
        self.put("select").expression(depth);
        if self.dice.roll(3) == 0 {
            self.put(", -1 , -2");
        }
        match self.dice.roll(4) {
            0 => self.put("from t"),
            1 => self.put("from t join u on").expression(depth),
            2 => self.put("from t , ( values (1,2) ) v"),
            _ => self.put("from s.t x"),
        };
        if self.dice.roll(3) > 0 {
            self.put("where").expression(depth);
        }
        match self.dice.roll(8) {
            0 => self.put("group by a having").expression(1),
            1 => self.put("order by 1").put("limit 5 offset").literal(),
            2 => self.put("limit -1"),
            3 => self.put("union all select").expression(1),
            _ => self,
        }
    }

    fn insert(&mut self) -> &mut Self {
        self.put("insert into t (a,b) values");
        for row in 0..=self.dice.roll(3) {
            if row > 0 {
                self.put(",");
            }
            self.put("(").literal().put(",").expression(1).put(")");
        }
        if self.dice.roll(4) == 0 {
            self.put("on conflict (a) where b = 1 do update set c =").expression(1);
        }
        self
    }

    fn update(&mut self) -> &mut Self {
        self.put("update t set a =").expression(1).put(", b =").literal();
        self.put("where").expression(3)
    }

    fn expression(&mut self, depth: usize) -> &mut Self {
        self.budget = self.budget.saturating_sub(1);
        if depth == 0 || self.budget == 0 {
            return if self.dice.roll(2) == 0 { self.literal() } else { self.column() };
        }
        let next = depth - 1;
        match self.dice.roll(16) {
            0 => self.put("(").expression(next).put(")"),
            1 => self.put("-").expression(next),
            2 => self.put("not").expression(next),
            3 => {
                self.expression(next).put("::").one_of(&["int", "text", "numeric(10,2)", "my.t[]"])
            }
            4 => self.put("f (").expression(next).put(",").expression(next).put(")"),
            5 => self.column().put("in (").literal().put(",").literal().put(")"),
            6 => self.column().put("between").literal().put("and").literal(),
            7 => self.put("case when").expression(next).put("then").expression(0).put("end"),
            8 => self.put("exists (").select(next).put(")"),
            9 => self.put("a [").expression(next).put("]"),
            10 => self.expression(next).put("is null"),
            11 => self.column().one_of(&["=", "<", ">=", "<>"]).literal(),
            12 => self.literal().one_of(&["=", "<", ">=", "<>"]).column(),
            13 => self.put("date").put("'2020-01-01'"),
            _ => self.expression(next).one_of(&OPERATORS).expression(next),
        }
    }
}
