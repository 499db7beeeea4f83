//! The process, its workers, and what the kernel knows.

families! {
    "The process", "`process_…` are as every Prometheus client has them; one is missing where the \
     kernel does not tell.";
    BUILD_INFO: Gauge One "pondage_build_info" ["version"]
        "1, labelled with the version that runs.";
    LISTENING: Gauge Flag "pondage_listening" []
        "1 while the PostgreSQL doors take clients.";
    STOPPING: Gauge Flag "pondage_stopping" []
        "1 while the process shuts down.";
    WORKER_UP: Gauge Flag "pondage_worker_up" ["worker"]
        "1 if the worker answered in time, else 0.", "It has a second.";
    WORKER_TURNS: Counter Count "pondage_worker_turns_total" ["worker"]
        "Turns of the worker's loop.";
    LOGIN_CONNECTIONS: Gauge Count "pondage_login_connections" []
        "Clients that are logging in.";
    CLIENT_REFUSED: Counter Count "pondage_client_refused_total" ["sqlstate"]
        "Clients that failed or were refused before they had a pool, by SQLSTATE.";
    MEMORY_USED: Gauge Bytes "pondage_memory_used_bytes" ["name"]
        "Memory in use, by what it is for.", "As in [SHOW MEM](console.md#show-mem).";
    MEMORY: Gauge Bytes "pondage_memory_bytes" ["name"]
        "Memory held, by what it is for.", "As in [SHOW MEM](console.md#show-mem).";
    TRACES: Counter Count "pondage_traces_total" ["outcome"]
        "Statements that were sampled for traces, by what has become of them.",
        "`sent`: the collector has them; `dropped`: the queue was full; `failed`: the collector did \
         not take them. Only with [`telemetry.otlp_endpoint`](tracing.md#traces).";
    CPU: Counter Seconds "process_cpu_seconds_total" []
        "User and system CPU time.";
    RESIDENT: Gauge Bytes "process_resident_memory_bytes" []
        "Resident memory.";
    VIRTUAL: Gauge Bytes "process_virtual_memory_bytes" []
        "Virtual memory.";
    THREADS: Gauge Count "process_threads" []
        "Threads.";
    OPEN_FDS: Gauge Count "process_open_fds" []
        "Open file descriptors.";
    MAX_FDS: Gauge Count "process_max_fds" []
        "Most file descriptors.";
    START_TIME: Gauge UnixTime "process_start_time_seconds" []
        "Start in Unix time.";
}
