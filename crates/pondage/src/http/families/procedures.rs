//! Procedures.

families! {
    "Procedures", "For the 256 that were called most, overloaded ones together, as in \
     [SHOW PROCEDURES](console.md#show-procedures); there from the first call on. \
     `pondage_procedure_company_total` over `pondage_procedure_joined_total`, plus one, is the length \
     of trains.";
    CALLS: Counter Count "pondage_procedure_calls_total" ["database", "procedure"]
        "Calls that were answered.";
    JOINED: Counter Count "pondage_procedure_joined_total" ["database", "procedure"]
        "Of these, those that were sent in a lane, alone or together with others.";
    COMPANY: Counter Count "pondage_procedure_company_total" ["database", "procedure"]
        "Calls of others that were on their way on the same server with one of those, summed.";
    RETRIES: Counter Count "pondage_procedure_retries_total" ["database", "procedure"]
        "Calls sent again after a deadlock or a serialization failure.";
    ERRORS: Counter Count "pondage_procedure_errors_total" ["database", "procedure"]
        "Calls that ended in an error.";
    SAMPLED: Counter Count "pondage_procedure_sampled_total" ["database", "procedure"]
        "Calls that were under way when the lock table was looked at.";
    LOCK_WAITS: Counter Count "pondage_procedure_lock_waits_total" ["database", "procedure"]
        "Those of them that waited for a lock.";
    DURATION: Histogram Seconds "pondage_procedure_duration_seconds" ["database", "procedure"]
        "Time from a call's arrival to the end of its answer.",
        "Buckets from 50 µs, doubling, to 13 s.";
}
