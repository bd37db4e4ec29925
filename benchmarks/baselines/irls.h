/* Maximum likelihood of logistic rewards by damped Newton, for K arms in D dimensions. */
#include <float.h>
#include <math.h>
#include <stdint.h>

enum { ITERATIONS = 30 };

typedef struct {
    double arms[K][D], columns[D][K]; /* both ways round, so that every loop runs along memory */
    double ridge, tol;
} model;

typedef struct {
    double value, slack;         /* of f, and what rounding leaves undecided in it */
    double mean[K], variance[K]; /* of a reward of each arm, times its draws */
} likelihood;

/* GCC 12 takes a model on the stack for better aligned than it is, and crashes: keep it static. */
static void set_model(model *of, const double *arms, double ridge, double tol) {
    of->ridge = ridge;
    of->tol = tol;
    for (int k = 0; k < K; k++)
        for (int i = 0; i < D; i++) of->arms[k][i] = of->columns[i][k] = arms[k * D + i];
}

static likelihood likelihood_at(const model *of, const double *counts, const double *sums,
                                const double *theta) {
    likelihood at = {0};
    double size = 0, norm = 0, z[K] = {0};
    for (int i = 0; i < D; i++)
        for (int k = 0; k < K; k++) z[k] += of->columns[i][k] * theta[i];
    for (int k = 0; k < K; k++) {
        if (counts[k] == 0) continue;
        double small = exp(-fabs(z[k])), share = 1.0 / (1.0 + small);
        double partition = counts[k] * ((z[k] > 0 ? z[k] : 0) + log1p(small));
        at.mean[k] = counts[k] * share * (z[k] > 0 ? 1.0 : small);
        at.variance[k] = counts[k] * small * share * share;
        at.value += partition - sums[k] * z[k];
        size += partition + fabs(sums[k] * z[k]);
    }
    for (int i = 0; i < D; i++) norm += theta[i] * theta[i];
    at.value += 0.5 * of->ridge * norm;
    at.slack = 4.0 * DBL_EPSILON * (size + 0.5 * of->ridge * norm);
    return at;
}

/* The Cholesky factor U of the Hessian, U^T U; its lower triangle means nothing. */
static void factorise(const model *of, const likelihood *at, double factor[D][D]) {
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) factor[i][j] = i == j ? of->ridge : 0.0;
    for (int k = 0; k < K; k++) {
        if (at->variance[k] == 0) continue;
        for (int i = 0; i < D; i++) {
            double weight = at->variance[k] * of->arms[k][i];
            for (int j = 0; j < D; j++) factor[i][j] += weight * of->arms[k][j];
        }
    }
    for (int l = 0; l < D; l++) {
        double scale = 1.0 / sqrt(factor[l][l]);
        for (int j = l; j < D; j++) factor[l][j] *= scale;
        for (int i = l + 1; i < D; i++)
            for (int j = i; j < D; j++) factor[i][j] -= factor[l][i] * factor[l][j];
    }
}

static void solve_transposed(double factor[D][D], double *x) {
    for (int i = 0; i < D; i++) {
        x[i] /= factor[i][i];
        for (int j = i + 1; j < D; j++) x[j] -= factor[i][j] * x[i];
    }
}

static void solve(double factor[D][D], double *x) {
    for (int i = D - 1; i >= 0; i--) {
        for (int j = i + 1; j < D; j++) x[i] -= factor[i][j] * x[j];
        x[i] /= factor[i][i];
    }
}

/* Moves theta until a Newton decrement g^T H^-1 g / 2 is at most tol, and by that step as well.
   Returns the likelihood there; `missed` counts the fits that took too many steps. */
static likelihood fit(const model *of, const double *counts, const double *sums, double *theta,
                      int64_t *missed) {
    double factor[D][D], move[D], trial[D];
    likelihood now = likelihood_at(of, counts, sums, theta), after;
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        for (int i = 0; i < D; i++) move[i] = of->ridge * theta[i];
        for (int k = 0; k < K; k++)
            for (int i = 0; i < D; i++) move[i] += of->arms[k][i] * (now.mean[k] - sums[k]);
        factorise(of, &now, factor);
        solve_transposed(factor, move);
        double slope = 0, size = 2, most;
        for (int i = 0; i < D; i++) slope += move[i] * move[i];
        solve(factor, move);
        do {
            size /= 2;
            for (int i = 0; i < D; i++) trial[i] = theta[i] - size * move[i];
            after = likelihood_at(of, counts, sums, trial);
            most = now.value - 1e-4 * size * slope + now.slack;
        } while (after.value > most && size > 0x1p-10);
        now = after;
        for (int i = 0; i < D; i++) theta[i] = trial[i];
        if (0.5 * slope <= of->tol) return now;
    }
    *missed += 1;
    return now;
}
