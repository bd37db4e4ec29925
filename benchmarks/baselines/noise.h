/* The random numbers of the C programs: drawn here, or handed in by whoever compares programs. */
#ifndef NOISE_H
#define NOISE_H
#include <math.h>
#include <stdint.h>

typedef struct {
    uint64_t s[4];
    double spare;
    int has_spare;
    const double *given; /* noise handed in, or 0 */
} source;

static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static uint64_t next(source *r) { /* xoshiro256++ */
    uint64_t *s = r->s, result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

static void seed_source(source *r, uint64_t seed) { /* splitmix64 */
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        r->s[i] = z ^ (z >> 31);
    }
    r->has_spare = 0;
}

static double symmetric(source *r) { return ((next(r) >> 11) + 0.5) * 0x1p-52 - 1.0; }

static double normal(source *r, int64_t t) { /* Marsaglia's polar method */
    if (r->given) return r->given[t];
    if (r->has_spare) {
        r->has_spare = 0;
        return r->spare;
    }
    double u, v, q;
    do {
        u = symmetric(r);
        v = symmetric(r);
        q = u * u + v * v;
    } while (q >= 1.0 || q == 0.0);
    double f = sqrt(-2.0 * log(q) / q);
    r->spare = v * f;
    r->has_spare = 1;
    return u * f;
}

static double uniform(source *r, int64_t t) {
    return r->given ? r->given[t] : (next(r) >> 11) * 0x1p-53;
}

#endif
