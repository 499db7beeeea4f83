//! What is refused, in words for people.

/// Fields of a SELECT that have to be empty.
pub const REFUSED_CLAUSES: [(&str, &str); 9] = [
    ("with_clause", "WITH"),
    ("into_clause", "INTO"),
    ("locking_clause", "FOR UPDATE or FOR SHARE"),
    ("having_clause", "HAVING"),
    ("window_clause", "WINDOW"),
    ("values_lists", "VALUES"),
    ("group_distinct", "GROUP BY DISTINCT"),
    ("larg", "UNION, INTERSECT or EXCEPT"),
    ("rarg", "UNION, INTERSECT or EXCEPT"),
];

/// Fields of a call that have to be empty.
pub const REFUSED_CALLS: [(&str, &str); 6] = [
    ("agg_distinct", "DISTINCT"),
    ("agg_order", "ORDER BY"),
    ("agg_filter", "FILTER"),
    ("over", "OVER"),
    ("agg_within_group", "WITHIN GROUP"),
    ("func_variadic", "VARIADIC"),
];

/// What is no constant, whatever is in it.
pub const IN_ARITHMETIC: [&str; 5] =
    ["AExpr", "FuncCall", "SubLink", "RowExpr", "SqlValueFunction"];

/// A kind of node.
pub fn what(kind: &str) -> &'static str {
    match kind {
        "SubLink" | "RangeSubselect" => "a sub-select",
        "FuncCall" | "RangeFunction" => "a function",
        "RangeTableSample" => "TABLESAMPLE",
        "AConst" | "ParamRef" => "a constant",
        "TypeCast" => "a cast",
        "CollateClause" => "COLLATE",
        "CaseExpr" => "CASE",
        "CoalesceExpr" => "COALESCE",
        "MinMaxExpr" => "GREATEST or LEAST",
        "SqlValueFunction" => "a value of the moment",
        "RowExpr" => "a row",
        "BoolExpr" => "NOT",
        "BooleanTest" => "IS TRUE or its like",
        "ColumnRef" => "a column",
        "AIndirection" => "a part of a value",
        "AArrayExpr" => "an array",
        "AExpr" => "an expression",
        "GroupingSet" => "grouping sets",
        "JsonTable" | "RangeTableFunc" => "a table out of a document",
        _ => "something unusual",
    }
}
