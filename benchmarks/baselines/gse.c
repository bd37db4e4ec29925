/* GSE with Gaussian rewards, uniform design and least squares: one replication after the other.
   Compiled with -DK=.. and -DD=.., so that loops have known lengths. */
#include "noise.h"

#define FLAT 1e-12 /* a pivot below this share of the largest diagonal entry is zero */

static void swap(int64_t *list, int i, int j) {
    int64_t kept = list[i];
    list[i] = list[j];
    list[j] = kept;
}

/* A solution of the normal equations: elimination with pivots from the diagonal, largest first.
   Coordinates without a pivot stay zero; arms in the span of those drawn are ranked alike by
   every solution. */
static void solve(double matrix[D][D], double *moment, double *theta) {
    int taken[D] = {0};
    double cut = 0;
    for (int i = 0; i < D; i++) {
        theta[i] = 0;
        if (FLAT * matrix[i][i] > cut) cut = FLAT * matrix[i][i];
    }
    for (int step = 0; step < D; step++) {
        int p = -1;
        for (int i = 0; i < D; i++)
            if (!taken[i] && (p < 0 || matrix[i][i] > matrix[p][p])) p = i;
        if (matrix[p][p] <= cut) break;
        taken[p] = 1;
        for (int i = 0; i < D; i++) {
            double factor = matrix[i][p] / matrix[p][p];
            if (i == p || factor == 0) continue;
            moment[i] -= factor * moment[p];
            for (int j = 0; j < D; j++) matrix[i][j] -= factor * matrix[p][j];
        }
    }
    for (int i = 0; i < D; i++)
        if (taken[i]) theta[i] = moment[i] / matrix[i][i];
}

static void to_front(int64_t *alive, int num, int front, const double *values) {
    for (int i = 0; i < front; i++) {
        int best = i;
        for (int j = i + 1; j < num; j++)
            if (values[alive[j]] > values[alive[best]]) best = j;
        swap(alive, i, best);
    }
}

/* The arms that get one draw more come first: those with the largest priorities, or any. */
static void share_out(source *noise, int64_t *alive, int num, int extra, const int64_t *order) {
    for (int i = 0; i < extra; i++) {
        int best = i;
        if (!order) best = i + (int)(next(noise) % (uint64_t)(num - i));
        for (int j = i + 1; order && j < num; j++)
            if (order[alive[j]] > order[alive[best]]) best = j;
        swap(alive, i, best);
    }
}

static int64_t replicate(source *noise, const double *arms, const double *mu, double sigma,
                         int64_t stages, const int64_t *draws, const int64_t *sizes,
                         const int64_t *orders) {
    int64_t alive[K];
    int num = K;
    for (int k = 0; k < K; k++) alive[k] = k;
    for (int64_t s = 0; s < stages; s++) {
        double matrix[D][D] = {{0}}, moment[D] = {0}, theta[D], values[K];
        int extra = (int)(draws[s] % num);
        share_out(noise, alive, num, extra, orders ? orders + s * K : 0);
        for (int i = 0; i < num; i++) {
            const double *x = arms + alive[i] * D;
            double count = (double)(draws[s] / num + (i < extra));
            double z = normal(noise, s * K + alive[i]);
            double total = count * mu[alive[i]] + sigma * sqrt(count) * z;
            for (int a = 0; a < D; a++) {
                double scaled = count * x[a];
                moment[a] += total * x[a];
                for (int b = 0; b < D; b++) matrix[a][b] += scaled * x[b];
            }
        }
        solve(matrix, moment, theta);
        for (int i = 0; i < num; i++) {
            double value = 0;
            for (int a = 0; a < D; a++) value += arms[alive[i] * D + a] * theta[a];
            values[alive[i]] = value;
        }
        to_front(alive, num, (int)sizes[s], values);
        num = (int)sizes[s];
    }
    return alive[0];
}

void play(const double *arms, const double *mu, double sigma, int64_t stages, const int64_t *draws,
          const int64_t *sizes, int64_t replications, uint64_t seed, const int64_t *orders,
          const double *given, int64_t *answers) {
    for (int64_t r = 0; r < replications; r++) {
        source noise = {.given = given};
        seed_source(&noise, seed + 0x1000003ull * (uint64_t)r);
        answers[r] = replicate(&noise, arms, mu, sigma, stages, draws, sizes, orders);
    }
}
