/* Ridge least squares on K arms in D dimensions, kept as G = X V^-1 X^T by rank-one updates. */
#include "noise.h"
#include "vectors.h"

typedef struct {
    double gram[P][P] ALIGNED, means[P] ALIGNED, variances[P] ALIGNED, logdet;
} ledger;

static void begin(ledger *s, const double *arms, double v0) {
    s->logdet = 0;
    for (int i = 0; i < P; i++) {
        for (int j = 0; j < P; j++) {
            s->gram[i][j] = 0;
            for (int l = 0; i < K && j < K && l < D; l++)
                s->gram[i][j] += arms[i * D + l] * arms[j * D + l] / v0;
        }
        s->variances[i] = s->gram[i][i];
        s->means[i] = i < K ? 0 : -INFINITY;
    }
}

static void observe(ledger *s, int arm, double reward) {
    double column[P] ALIGNED;
    for (int b = 0; b < P / W; b++) v(column)[b] = v(s->gram[arm])[b];
    double scale = 1 / (1 + column[arm]), error = scale * (reward - s->means[arm]);
    s->logdet += log1p(column[arm]);
    for (int b = 0; b < P / W; b++) {
        v(s->means)[b] += error * v(column)[b];
        v(s->variances)[b] -= scale * v(column)[b] * v(column)[b];
    }
    for (int i = 0; i < K; i++) {
        double factor = scale * column[i];
        for (int b = 0; b < P / W; b++) v(s->gram[i])[b] -= factor * v(column)[b];
    }
}

/* The arm that shrinks the distance between two arms most. */
static int greedy(ledger *s, int one, int two, const int64_t *order) {
    double scores[P] ALIGNED;
    for (int k = 0; k < P; k++) {
        double gap = s->gram[one][k] - s->gram[two][k];
        scores[k] = k < K ? gap * gap / (1 + s->variances[k]) : -INFINITY;
    }
    return best_by(scores, order);
}
