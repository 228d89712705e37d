//! Sets of parameters with which tests of whole systems run each policy.

/// Policies with their sets of parameters, each an inline TOML table. A test replaces `#` by a number of servers, at
/// least 1 and at most the number of nodes.
const VARIANTS: &[(&str, &[&str])] = &[
    (
        "latin-square",
        &[
            "{ order = # }",
            "{ order = #, preemption = false }",
            "{ order = #, columns = 1 }",
            "{ order = #, columns = 1, choices = 2 }",
            r#"{ order = #, columns = 1, choices = 2, binding = "late" }"#,
            r#"{ order = 1, choices = 3, patience = "300ms" }"#,
            r#"{ order = #, choices = 2, binding = "late" }"#,
        ],
    ),
    ("full-repetition", &["{ order = # }", r#"{ order = #, preempt = "task" }"#]),
    ("random", &["{}"]),
    ("round-robin", &["{}"]),
    ("central-queue", &["{}"]),
    ("gang", &[r#"{ quantum = "200ms" }"#]),
    (
        "sparrow",
        &[
            "{}",
            "{ cancellation = false, probe_ratio = 1.05 }",
            r#"{ form = "pairs", group = # }"#,
            r#"{ form = "per-task" }"#,
            "{ min_probes = 20, replacement = true }",
        ],
    ),
    ("peacock", &[r#"{ interval = "500ms" }"#, r#"{ form = "threshold" }"#]),
    (
        "murmuration",
        &[
            "{}",
            r#"{ batch = false, update_delay = "300ms", ask_timeout = "100ms", answer_delay = "200ms" }"#,
            r#"{ order = "srjf", decision_per_job = "20ms", decision_per_task = "5ms" }"#,
            r#"{ order = "srjf", rank = "job", bypass = 5, preemptive = true, decision_per_job = "20ms", decision_per_task = "5ms", news = "between-tasks" }"#,
            r#"{ order = "srjf", rank = "job-left-oracle", bypass = 5, ties = "lowest" }"#,
            r#"{ order = "las", quantum = "300ms" }"#,
            r#"{ order = "las", quantum = "1s", batch = false, repair = "5s" }"#,
            r#"{ wait = "clock", copy = "naive" }"#,
            r#"{ spread = "datagrams", repair = "2s" }"#,
            r#"{ spread = "epidemic", fan_out = #, repair = "5s" }"#,
        ],
    ),
    ("hawk", &["{ big_partition = 0.6, replacement = true }", "{ min_probes = 0 }"]),
    (
        "eagle",
        &[
            r#"{ big_partition = 0.5, rank = "job" }"#,
            "{ retry_rounds = 3, sticky = false, min_probes = 4, cancellation = false }",
        ],
    ),
    (
        "pigeon",
        &[
            "{ group = # }",
            r#"{ group = #, reserved = 0.3, weight = 5, standby = true, push = "50ms", declare_after = "2s", split = "round-robin" }"#,
            r#"{ group = #, weight = "strict", lengths = "200ms" }"#,
            r#"{ group = #, split = "in-order", master_on_worker = true, declare_after = "1s" }"#,
            "{ group = #, reserved = 0.3, phantom_reserved = true }",
        ],
    ),
    (
        "kubernetes",
        &[
            r#"{ retry_after = "1s" }"#,
            r#"{ retry = "tail", attempt = "20ms" }"#,
            r#"{ retry = "events", attempt = "0s" }"#,
        ],
    ),
    (
        "yaq-d",
        &[
            r#"{ heartbeat = "500ms" }"#,
            r#"{ heartbeat = "2s", together = true, jitter = true, remembers = false, nodes = 0.5 }"#,
        ],
    ),
    ("yaq-c", &["{}", "{ srpt = false }"]),
    (
        "kairos",
        &[
            r#"{ quantum = "200ms" }"#,
            r#"{ quantum = "1s", pass = "eager", queue = 0 }"#,
            r#"{ quantum = "300ms", pass = "eager", queue = 2, pick = "sum", stretch = 2, missed = 1 }"#,
            r#"{ quantum = "500ms", interval = "100ms", pass = "levels", queue = 8, pick = "random", hysteresis = "500ms", guard = "none" }"#,
            r#"{ quantum = "100ms", pass = "eager", silent = true }"#,
            r#"{ quantum = "2s", interval = "3s", queue = 1, guard = "running", missed = 1, attained = "work" }"#,
        ],
    ),
    ("yarn-fifo", &[r#"{ heartbeat = "200ms" }"#, r#"{ heartbeat = "500ms", am = true }"#]),
    (
        "big-c",
        &[
            r#"{ heartbeat = "200ms", monitor = "500ms" }"#,
            r#"{ heartbeat = "300ms", monitor = "200ms", short_share = 0.5, over = 0.0, damping = 1.0, am = true }"#,
            r#"{ heartbeat = "300ms", monitor = "500ms", short_share = 0.7, kill = true }"#,
        ],
    ),
    ("las-sparrow", &[r#"{ quantum = "300ms" }"#, r#"{ quantum = "1s", queue = 1 }"#]),
    (
        "3sigma",
        &[
            "{}",
            r#"{ cycle = "100ms", slot = "500ms" }"#,
            r#"{ cycle = "200ms", slot = "500ms", slots = 8, estimates = "point", samples = 5, over = "never" }"#,
            r#"{ cycle = "100ms", slot = "250ms", estimates = "perfect", decide = "50ms" }"#,
            r#"{ cycle = "250ms", slot = "1s", estimates = "normal", shift = 0.3, cov = 0.5, over = "always" }"#,
            r#"{ cycle = "500ms", slot = "500ms", slots = 10, samples = 10, preempt = false }"#,
            r#"{ cycle = "500ms", slot = "1s", slots = 6, consider = 2, price = 3.0 }"#,
        ],
    ),
    ("prio", &[r#"{ cycle = "200ms" }"#, r#"{ cycle = "1s", preempt = false }"#]),
    (
        "distsched",
        &[
            r#"{ cycle = "500ms" }"#,
            r#"{ cycle = "100ms", estimates = "point", of = "max", risk = 0.0, constantly = "1s" }"#,
            r#"{ cycle = "250ms", estimates = "actual", over = "never", observe = false, preempt = false }"#,
            r#"{ cycle = "200ms", estimates = "request", over = "always" }"#,
            r#"{ cycle = "300ms", of = "max", risk = 0.5, constantly = "500ms", horizon = "10s" }"#,
        ],
    ),
    (
        "naive",
        &[
            "{ scale = 0.02 }",
            r#"{ scale = 0.02, binding = "sparrow" }"#,
            r#"{ scale = 0.02, binding = "random", progress = { noise = 0.3 } }"#,
        ],
    ),
    (
        "late",
        &[
            "{ scale = 0.01, cap = 0.5 }",
            r#"{ running = "0s", report = "200ms", slow_task = 1.0, cap = 1.0 }"#,
            r#"{ running = "0s", report = "200ms", slow_task = 1.0, cap = 1.0, binding = "sparrow" }"#,
            r#"{ scale = 0.01, cap = 0.5, binding = "random", progress = { phases = [4, 1, 1], delay = "3s" } }"#,
        ],
    ),
    (
        "hadoop2",
        &[
            "{ scale = 0.02, slow = 0.0 }",
            r#"{ scale = 0.02, slow = 0.0, binding = "sparrow", progress = { phases = [4, 1, 1] } }"#,
            r#"{ scale = 0.02, slow = 0.0, binding = "random" }"#,
        ],
    ),
    (
        "mantri",
        &[
            r#"{ report = "200ms" }"#,
            r#"{ report = "50ms", delta = 0.0, restarts = 9 }"#,
            r#"{ report = "50ms", delta = 0.0, binding = "sparrow", progress = { noise = 0.3, delay = "20ms" } }"#,
            r#"{ report = "50ms", delta = 0.0, binding = "random" }"#,
        ],
    ),
    (
        "dolly",
        &[
            "{ budget = 1.0, load = 1.0, straggler = 0.3 }",
            r#"{ budget = 1.0, load = 1.0, straggler = 0.3, binding = "sparrow" }"#,
            r#"{ budget = 1.0, load = 1.0, straggler = 0.3, binding = "random" }"#,
        ],
    ),
    (
        "hedged",
        &[
            "{ quantile = 0.6, window = 20 }",
            r#"{ quantile = 0.6, window = 20, binding = "sparrow" }"#,
            r#"{ quantile = 0.6, window = 20, binding = "random" }"#,
        ],
    ),
    (
        "hopper",
        &[
            "{ scale = 0.01 }",
            r#"{ running = "0s", report = "200ms", slow_task = 1.0, slow_node = 0.0, beta = 2.0, probes = 2.0 }"#,
            r#"{ running = "0s", report = "200ms", slow_task = 1.0, refusals = 0, beta = 1.0 }"#,
            r#"{ scale = 0.01, refusals = 1, beta = 2.0, progress = { phases = [4, 1, 1], delay = "3s" } }"#,
        ],
    ),
    ("reserved", &["{}", "{ probes = 1 }", "{ expiry = \"1s\" }"]),
];

/// The sets of parameters of a policy that runs jobs.
pub(crate) fn variants(policy: &str) -> &'static [&'static str] {
    let of = VARIANTS.iter().find(|(name, _)| *name == policy);
    of.unwrap_or_else(|| panic!("write parameters with which tests run `{policy}`")).1
}
