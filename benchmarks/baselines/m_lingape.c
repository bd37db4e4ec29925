/* m-LinGapE, paired indices, greedy, heuristic threshold: one replication after the other.
   Compiled with -DK=.. -DM=.., so that loops have known lengths. */
#include "noise.h"

typedef struct {
    double core[K][K], means[K]; /* X V^-1 X^T and the estimated means */
} ledger;

typedef struct {
    int weakest, challenger;
    double bound;
} pair;

/* Ranks by counting: no branch to mispredict, and arms once drawn do not tie. */
static void split(const double *means, int *inside, int *outside) {
    int members = 0, others = 0;
    for (int k = 0; k < K; k++) {
        int rank = 0;
        for (int j = 0; j < K; j++) rank += means[j] > means[k];
        if (rank < M)
            inside[members++] = k;
        else
            outside[others++] = k;
    }
}

static pair most_doubtful(const ledger *stats, double width, const int *inside,
                          const int *outside) {
    pair found = {0, 0, -INFINITY};
    for (int c = 0; c < K - M; c++)
        for (int b = 0; b < M; b++) {
            int i = outside[c], j = inside[b];
            double square = stats->core[i][i] + stats->core[j][j] - 2.0 * stats->core[i][j];
            double bound =
                stats->means[i] - stats->means[j] + width * sqrt(square > 0 ? square : 0);
            if (bound > found.bound) found = (pair){j, i, bound};
        }
    return found;
}

static int greedy(const ledger *stats, pair between) {
    int arm = 0;
    double best = -1;
    for (int k = 0; k < K; k++) {
        double gap = stats->core[between.weakest][k] - stats->core[between.challenger][k];
        double score = gap * gap / (1.0 + stats->core[k][k]);
        if (score > best) {
            best = score;
            arm = k;
        }
    }
    return arm;
}

static void observe(ledger *stats, int arm, double reward) {
    double column[K];
    for (int k = 0; k < K; k++) column[k] = stats->core[arm][k];
    double scale = 1.0 / (1.0 + column[arm]), error = scale * (reward - stats->means[arm]);
    for (int i = 0; i < K; i++) {
        double factor = scale * column[i];
        stats->means[i] += error * column[i];
        for (int j = 0; j < K; j++) stats->core[i][j] -= factor * column[j];
    }
}

static int64_t replicate(source *noise, const double *gram, const double *mu, double sigma,
                         double delta, int64_t *answer, int64_t *counts) {
    ledger stats = {.means = {0}};
    for (int i = 0; i < K; i++)
        for (int j = 0; j < K; j++) stats.core[i][j] = gram[i * K + j];
    for (int k = 0; k < K; k++) answer[k] = counts[k] = 0;
    for (int64_t t = 0;; t++) {
        int arm = (int)t, inside[K], outside[K];
        if (t >= K) {
            split(stats.means, inside, outside);
            double width = sigma * sqrt(2.0 * log((1.0 + log((double)t)) / delta));
            pair found = most_doubtful(&stats, width, inside, outside);
            if (found.bound <= 0) {
                for (int b = 0; b < M; b++) answer[inside[b]] = 1;
                return t;
            }
            arm = greedy(&stats, found);
        }
        observe(&stats, arm, mu[arm] + sigma * normal(noise, t));
        counts[arm]++;
    }
}

void play(const double *gram, const double *mu, double sigma, double delta, int64_t replications,
          uint64_t seed, const double *given, int64_t *pulls, int64_t *answers, int64_t *counts) {
    for (int64_t r = 0; r < replications; r++) {
        source noise = {.given = given};
        seed_source(&noise, seed + 0x1000003ull * (uint64_t)r);
        pulls[r] =
            replicate(&noise, gram, mu, sigma, delta, answers + r * K, counts + r * K);
    }
}
