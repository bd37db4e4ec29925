/* Fits to the rewards of recorded runs, round by round, each from the last estimate.
   Compiled with -DK=.. -DD=.., so that loops have known lengths. */
#include "irls.h"

static void replicate(const model *of, int64_t rounds, const int64_t *drawn,
                      const double *rewards, double *thetas, int64_t *missed) {
    double counts[K] = {0}, sums[K] = {0}, theta[D] = {0};
    for (int64_t t = 0; t < rounds; t++) {
        counts[drawn[t]] += 1;
        sums[drawn[t]] += rewards[t];
        if (t + 1 < D) continue; /* GLM-TSL asks for no estimate yet */
        fit(of, counts, sums, theta, missed);
        for (int i = 0; i < D; i++) thetas[t * D + i] = theta[i];
    }
}

void play(const double *arms, double ridge, double tol, int64_t replications, int64_t rounds,
          const int64_t *drawn, const double *rewards, double *thetas, int64_t *missed) {
    static model of;
    set_model(&of, arms, ridge, tol);
    for (int64_t r = 0; r < replications; r++)
        replicate(&of, rounds, drawn + r * rounds, rewards + r * rounds, thetas + r * rounds * D,
                  missed + r);
}
