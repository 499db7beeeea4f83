//! What an examination finds.

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Good to know. Nothing has to be done.
    Note,
    /// Something is lost by it, or may be one day.
    Warning,
    /// It does not work, or loses data.
    Problem,
}

impl Weight {
    pub fn word(self) -> &'static str {
        match self {
            Weight::Note => "note",
            Weight::Warning => "warning",
            Weight::Problem => "problem",
        }
    }
}

/// One thing, what comes of it, what to do, and how to see that it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub weight: Weight,
    /// One line.
    pub what: String,
    pub effect: String,
    /// SQL to run as a superuser or the owner; a line of comment where SQL can't do it.
    pub fix: Vec<String>,
    /// SQL, and in a comment what it says when all is well.
    pub verify: String,
}

impl Finding {
    pub fn new(weight: Weight, what: impl Into<String>) -> Finding {
        Finding {
            weight,
            what: what.into(),
            effect: String::new(),
            fix: Vec::new(),
            verify: String::new(),
        }
    }

    pub fn note(what: impl Into<String>) -> Finding {
        Finding::new(Weight::Note, what)
    }

    pub fn warning(what: impl Into<String>) -> Finding {
        Finding::new(Weight::Warning, what)
    }

    pub fn problem(what: impl Into<String>) -> Finding {
        Finding::new(Weight::Problem, what)
    }

    pub fn effect(mut self, effect: impl Into<String>) -> Finding {
        self.effect = effect.into();
        self
    }

    /// One line more of what to run.
    pub fn fix(mut self, line: impl Into<String>) -> Finding {
        self.fix.push(line.into());
        self
    }

    pub fn fixes(mut self, lines: impl IntoIterator<Item = String>) -> Finding {
        self.fix.extend(lines);
        self
    }

    pub fn verify(mut self, sql: impl Into<String>) -> Finding {
        self.verify = sql.into();
        self
    }
}

/// What one check came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    pub check: &'static str,
    /// How things are, in one line; or why nobody could look.
    pub standing: Result<String, String>,
    pub findings: Vec<Finding>,
}

impl Examined {
    pub fn worst(&self) -> Option<Weight> {
        self.findings.iter().map(|finding| finding.weight).max()
    }
}

/// One database, as one role sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    pub database: String,
    pub user: String,
    /// Where it is; as far as that is known.
    pub server: String,
    /// What was examined, or why nothing could be.
    pub checks: Result<Vec<Examined>, Unreached>,
}

/// Why no connection came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// SQLSTATE.
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
}

impl Unreached {
    /// Whether the server answered, and let nobody in.
    pub fn refused(&self) -> bool {
        ["28", "42501", "3D"].iter().any(|class| self.code.starts_with(class))
    }
}
