/* GLM-TSL with logistic rewards: one replication after the other.
   Compiled with -DK=.. -DD=.., so that loops have known lengths. */
#include "irls.h"
#include "noise.h"

/* The arm with the largest mean under theta + a U^-1 z, where U^T U is the Hessian. */
static int sampled(const model *of, const likelihood *at, double a, const double *theta,
                   double *z) {
    double factor[D][D], values[K] = {0};
    int arm = 0;
    factorise(of, at, factor);
    solve(factor, z);
    for (int i = 0; i < D; i++)
        for (int k = 0; k < K; k++) values[k] += of->columns[i][k] * (theta[i] + a * z[i]);
    for (int k = 1; k < K; k++)
        if (values[k] > values[arm]) arm = k;
    return arm;
}

static void replicate(source *normals, source *uniforms, const model *of, const double *mu,
                      double a, int64_t rounds, int64_t *drawn, double *rewards,
                      int64_t *missed) {
    double counts[K] = {0}, sums[K] = {0}, theta[D] = {0}, z[D];
    likelihood at = {0};
    for (int64_t t = 0; t < rounds; t++) {
        int arm = (int)t;
        if (t >= D) {
            for (int i = 0; i < D; i++) z[i] = normal(normals, t * D + i);
            arm = sampled(of, &at, a, theta, z);
        }
        double reward = uniform(uniforms, t) < mu[arm];
        counts[arm] += 1;
        sums[arm] += reward;
        drawn[t] = arm;
        rewards[t] = reward;
        if (t + 1 >= D) at = fit(of, counts, sums, theta, missed);
    }
}

void play(const double *arms, const double *mu, double a, double ridge, double tol,
          int64_t replications, int64_t rounds, uint64_t seed, const double *given_normals,
          const double *given_uniforms, int64_t *drawn, double *rewards, int64_t *missed) {
    static model of;
    set_model(&of, arms, ridge, tol);
    for (int64_t r = 0; r < replications; r++) {
        source normals = {.given = given_normals}, uniforms = {.given = given_uniforms};
        seed_source(&normals, seed + 0x1000003ull * (uint64_t)(2 * r));
        seed_source(&uniforms, seed + 0x1000003ull * (uint64_t)(2 * r + 1));
        replicate(&normals, &uniforms, &of, mu, a, rounds, drawn + r * rounds,
                  rewards + r * rounds, missed + r);
    }
}
