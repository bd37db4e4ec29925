/* LinGapE, greedy, pairwise threshold: one replication after the other.
   Compiled with -DK=.. -DD=.. and -DARM_SPACE=0 or 1, so that loops have known lengths. */
#include "noise.h"

#if ARM_SPACE
#define SIZE K
static void row(double core[SIZE][SIZE], const double *arms, int arm, double *direction, double *out) {
    for (int k = 0; k < K; k++) out[k] = direction[k] = core[arm][k];
}
#else
#define SIZE D
static void row(double core[SIZE][SIZE], const double *arms, int arm, double *direction, double *out) {
    for (int i = 0; i < D; i++) {
        double total = 0;
        for (int j = 0; j < D; j++) total += core[i][j] * arms[arm * D + j];
        direction[i] = total;
    }
    for (int k = 0; k < K; k++) {
        double total = 0;
        for (int j = 0; j < D; j++) total += arms[k * D + j] * direction[j];
        out[k] = total;
    }
}
#endif

static int64_t replicate(source *noise, const double *arms, const double *mu, const int64_t *order,
                         double sigma, double level, double bias, double v0, int64_t *answer,
                         int64_t *counts) {
    double core[SIZE][SIZE], means[K] = {0}, variances[K], direction[SIZE], other[SIZE];
    double from_leader[K], from_rival[K], column[K], logdet = 0;
    for (int k = 0; k < K; k++) {
        variances[k] = 0;
        for (int j = 0; j < D; j++) variances[k] += arms[k * D + j] * arms[k * D + j] / v0;
        counts[k] = 0;
    }
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j < SIZE; j++) {
#if ARM_SPACE
            core[i][j] = 0;
            for (int l = 0; l < D; l++) core[i][j] += arms[i * D + l] * arms[j * D + l] / v0;
#else
            core[i][j] = i == j ? 1.0 / v0 : 0.0;
#endif
        }
    for (int64_t t = 0;; t++) {
        int leader = 0, rival = 0, arm = 0;
        for (int k = 1; k < K; k++)
            if (means[k] > means[leader]) leader = k;
        row(core, arms, leader, direction, from_leader);
        double width = sigma * (sqrt(level + logdet) + bias), most = -INFINITY;
        for (int k = 0; k < K; k++) {
            if (k == leader) continue;
            double square = variances[k] + variances[leader] - 2.0 * from_leader[k];
            double bound = means[k] - means[leader] + width * sqrt(square > 0 ? square : 0);
            if (bound > most) {
                most = bound;
                rival = k;
            }
        }
        if (t >= K && most <= 0) {
            *answer = leader;
            return t;
        }
        if (t < K)
            arm = (int)t;
        else {
            row(core, arms, rival, other, from_rival);
            double best = -1;
            for (int k = 0; k < K; k++) {
                double gap = from_leader[k] - from_rival[k];
                double score = gap * gap / (1.0 + variances[k]);
                if (score > best || (score == best && order[k] > order[arm])) {
                    best = score;
                    arm = k;
                }
            }
        }
        double reward = mu[arm] + sigma * normal(noise, t);
        row(core, arms, arm, direction, column);
        double scale = 1.0 / (1.0 + column[arm]), error = scale * (reward - means[arm]);
        logdet += log1p(column[arm]);
        for (int k = 0; k < K; k++) {
            means[k] += error * column[k];
            variances[k] -= scale * column[k] * column[k];
        }
        for (int i = 0; i < SIZE; i++) {
            double factor = scale * direction[i];
            for (int j = 0; j < SIZE; j++) core[i][j] -= factor * direction[j];
        }
        counts[arm]++;
    }
}

void play(const double *arms, const double *mu, const int64_t *order, double sigma, double level,
             double bias, double v0, int64_t replications, uint64_t seed, const double *given,
             int64_t *pulls, int64_t *answers, int64_t *counts) {
    for (int64_t r = 0; r < replications; r++) {
        source noise = {.given = given};
        seed_source(&noise, seed + 0x1000003ull * (uint64_t)r);
        pulls[r] = replicate(&noise, arms, mu, order, sigma, level, bias, v0, &answers[r],
                             counts + r * K);
    }
}
