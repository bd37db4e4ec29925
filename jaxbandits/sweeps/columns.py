"""Names of the columns of results."""

PER_REPLICATION = ("pulls", "correct", "stopped", "reason")
TIMES = ("seconds", "compile_seconds")  # of a cell; in the attributes, of the whole sweep
SUMMARY = (
    "replications",
    "cut_short",
    "errors",
    "error_rate",
    "error_low",
    "error_high",
    "pulls_mean",
    "pulls_se",
    "pulls_low",
    "pulls_high",
    "pulls_mean_is_lower_bound",
)
# Columns that tables of comparisons have besides.
REGRET = ("regret_mean", "regret_se", "regret_low", "regret_high")
DIFFERENCE = ("difference", "difference_low", "difference_high")
OVER_BOUND = "over_bound"
NUM_ARMS = "num_arms"  # which an axis can be named too, as it says the same
OF_PARTS = ("info_", "facts_")  # begin names: what algorithms count, what the engine finds out
# Names of dimensions and columns, which no axis can have.
TAKEN: frozenset[str] = frozenset(
    {
        *("instance", "algorithm", "replication", "why", "arm", "round", "target", "answers"),
        *(*PER_REPLICATION, *SUMMARY, *TIMES, "reasons", "judged", "unsettled", "engine_reason"),
        *("promised_error", "pull_lower_bound"),
        *("arm_pulls", "arm_pulls_mean", "regret", "regret_errors"),
        *(*REGRET, *DIFFERENCE, OVER_BOUND),
        *("bound", "error_bound", "average_reward", "best_average"),  # experiments add them
    }
)
