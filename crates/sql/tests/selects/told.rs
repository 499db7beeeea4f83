//! A SELECT in words.

use sql::{Comparison, Filter, Output, Select, Source};

type Column = (usize, String);

struct Told<'a> {
    names: &'a [String],
    value: &'a dyn Fn(Source) -> String,
}

pub fn told(select: &Select<Column>, names: &[String], value: &dyn Fn(Source) -> String) -> String {
    let told = Told { names, value };
    let mut out = String::new();
    if select.distinct {
        out += "distinct ";
    }
    let outputs: Vec<String> = select.outputs.iter().map(|output| told.output(output)).collect();
    out += &outputs[..select.shown].join(", ");
    for hidden in &outputs[select.shown..] {
        out += &format!(" +{hidden}");
    }
    if select.filter != Filter::And(Vec::new()) {
        out += &format!(" | {}", told.filter(&select.filter));
    }
    if !select.group.is_empty() {
        let group: Vec<String> = select.group.iter().map(|column| told.column(column)).collect();
        out += &format!(" group {}", group.join(", "));
    }
    let order: Vec<String> = select.order.iter().map(order).collect();
    if !order.is_empty() {
        out += &format!(" order {}", order.join(", "));
    }
    for (word, count) in [("limit", select.limit), ("offset", select.offset)] {
        if let Some(count) = count {
            out += &format!(" {word} {}", value(count));
        }
    }
    out
}

fn order(order: &sql::Order) -> String {
    let nulls = match (order.descending, order.nulls_first) {
        (false, true) => " first",
        (true, false) => " last",
        _ => "",
    };
    format!("{}{}{nulls}", order.output, if order.descending { " desc" } else { "" })
}

impl Told<'_> {
    fn column(&self, (table, name): &Column) -> String {
        format!("{}.{name}", self.names[*table])
    }

    fn output(&self, output: &Output<Column>) -> String {
        let call = |name: &str, column: &Column| format!("{name}({})", self.column(column));
        match output {
            Output::Column(column) => self.column(column),
            Output::CountRows => "count(*)".to_owned(),
            Output::Count(column) => call("count", column),
            Output::Sum(column) => call("sum", column),
            Output::Min(column) => call("min", column),
            Output::Max(column) => call("max", column),
            Output::Avg(column) => call("avg", column),
        }
    }

    fn filter(&self, filter: &Filter<Column>) -> String {
        let all = |parts: &[Filter<Column>], word: &str| {
            let parts: Vec<String> = parts.iter().map(|part| self.filter(part)).collect();
            format!("({})", parts.join(word))
        };
        match filter {
            Filter::And(parts) => all(parts, " and "),
            Filter::Or(parts) => all(parts, " or "),
            Filter::Compare(column, comparison, source) => {
                let operator = match comparison {
                    Comparison::Equal => "=",
                    Comparison::Less => "<",
                    Comparison::LessEqual => "<=",
                    Comparison::Greater => ">",
                    Comparison::GreaterEqual => ">=",
                };
                format!("{} {operator} {}", self.column(column), (self.value)(*source))
            }
            Filter::In(column, sources) | Filter::NotIn(column, sources) => {
                let not = if matches!(filter, Filter::NotIn(..)) { "not " } else { "" };
                let sources: Vec<String> =
                    sources.iter().map(|source| (self.value)(*source)).collect();
                format!("{} {not}in ({})", self.column(column), sources.join(", "))
            }
            Filter::Like(column, source, wanted) => {
                let not = if *wanted { "" } else { "not " };
                format!("{} {not}like {}", self.column(column), (self.value)(*source))
            }
            Filter::Is(column, value) => format!("{} is {value}", self.column(column)),
            Filter::AnyOf(column, source) => {
                format!("{} any {}", self.column(column), (self.value)(*source))
            }
            Filter::Null(column) => format!("{} is null", self.column(column)),
            Filter::NotNull(column) => format!("{} is not null", self.column(column)),
            Filter::Same(one, other) => {
                format!("{} = {}", self.column(one), self.column(other))
            }
        }
    }
}
