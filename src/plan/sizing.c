/*
 * sizing.c - the arithmetic of Bloom filters.
 *
 * Classic filter. n keys throw k balls each into m bits. A bit stays 0 with
 * probability (1 - 1/m)^(kn), about e^(-kn/m), so
 *
 *     p = (1 - e^(-kn/m))^k        m = -kn / ln(1 - p^(1/k))
 *
 * and the best k is (m/n) ln 2, which makes half the bits 1. With that k,
 * m/n = -ln p / (ln 2)^2: 4.79 bits a key at 10 %, 9.585 at 1 %, 14.377 at
 * 0.1 %. A k must be whole, so what is bought is a little more: both
 * neighbours are tried and the smaller m wins. Truncating k instead, as some
 * do, gives 9 where 0.1 % needs 10.
 *
 * The formula takes the k probes of a question as independent. They are not
 * quite: they share one filter, whose fill varies. The exact probability is
 * larger (Bose et al. 2008); at n = 100, m = 2048, k = 14 by 1.6 %. See
 * seen_fpp_exact().
 *
 * Blocked filter. A key throws w balls into one 512-bit line of each of r
 * regions. Lines fill unevenly: of n keys, j meet in a line with binomial
 * probability b(j), and such a line answers wrongly with probability
 * (1 - (1 - w/512)^j)^w exactly, because each ball has a group of its own.
 * Regions are independent, so
 *
 *     p = ( sum over j of b(j) (1 - (1 - w/512)^j)^w )^r
 *
 * (Putze, Sanders, Singler 2007 with the Poisson limit of b), and 2^-32 for
 * every key of the line on top, see region_fpp(). The unevenness
 * costs 5 % more bits than classic at 1 %, 9 % at 0.1 %, and grows quickly
 * below; a second line averages it out again:
 *
 *     bits/key for     10 %    1 %   0.1 %   1e-4   1e-5   1e-6
 *     classic          4.81   9.59   14.38  19.17  23.97  28.76
 *     1 line, w = 8    6.00  10.10   15.72  23.6   35.0
 *     2 lines                11.8    15.7   20.2   25.4   31.6
 *
 * So the planner takes one line down to 0.046 %, two to 5e-7, three beyond, and
 * fewer bits per line above 2 %. One more line must save a twentieth of the
 * memory, since it costs another cache miss.
 */
#include "plan/sizing.h"

#include "base/base.h"
#include "base/checked.h"

#include <math.h>

#define LINE_BITS 512

static const double ln2 = 0.693147180559945309417;

/* ---- Classic ------------------------------------------------------------ */

double seen_fpp_bloom(double n, double m, double k)
{
    if (!(m > 0) || !(k > 0)) return NAN;
    return pow(-expm1(-k * n / m), k);
}

#define EXACT_MAX_K SEEN_MAX_HASHES

typedef double chain[EXACT_MAX_K + 1][EXACT_MAX_K + 1];

/* a = a * b for lower triangular matrices of `size` rows. a may be b: row i
 * needs only rows up to i, so going down never reads what it has written. */
static void chain_multiply(chain a, chain b, uint32_t size)
{
    for (uint32_t i = size; i-- > 0;) {
        double row[EXACT_MAX_K + 1];
        for (uint32_t j = 0; j <= i; j++) {
            row[j] = 0;
            for (uint32_t x = j; x <= i; x++)
                row[j] += a[i][x] * b[x][j];
        }
        for (uint32_t j = 0; j <= i; j++)
            a[i][j] = row[j];
    }
}

/*
 * Follow d bits that a question asks about while kn balls fall on m bits. The
 * number c of them still 0 is a Markov chain: a ball lowers it with probability
 * c/m. Its matrix to the power kn, by squaring, holds the probability u(d) that
 * all d end up 1. The k probes of a question hit d different bits with a
 * probability that is another small chain. All terms are positive, so nothing
 * cancels, unlike in the textbook's alternating sum.
 */
double seen_fpp_exact(uint64_t n, uint64_t m, uint32_t k)
{
    if (m == 0 || k == 0) return NAN;
    uint64_t balls;
    if (k > EXACT_MAX_K || !seen_mul_fits(n, k, &balls))
        return seen_fpp_bloom((double)n, (double)m, k);

    chain step = {{0}}, power = {{0}};
    for (uint32_t c = 0; c <= k; c++) {
        step[c][c] = c < m ? 1 - (double)c / (double)m : 0;
        if (c > 0) step[c][c - 1] = 1 - step[c][c];
        power[c][c] = 1;
    }
    for (; balls > 0; balls >>= 1) {
        if (balls & 1) chain_multiply(power, step, k + 1);
        chain_multiply(step, step, k + 1);
    }

    double distinct[EXACT_MAX_K + 1] = {1}; /* after as many probes as rounds */
    for (uint32_t probe = 0; probe < k; probe++)
        for (uint32_t d = probe + 1; d > 0; d--) {
            double fresh = d - 1 < m ? 1 - (double)(d - 1) / (double)m : 0;
            double stay = d < m ? (double)d / (double)m : 1;
            distinct[d] = distinct[d] * stay + distinct[d - 1] * fresh;
            if (d == 1) distinct[0] = 0;
        }

    double p = 0;
    for (uint32_t d = 1; d <= k; d++)
        p += distinct[d] * power[d][0];
    return p;
}

uint32_t seen_hashes_for(double n, double m)
{
    double ideal = m / n * ln2;
    if (!(ideal > 1)) return 1;
    if (ideal >= SEEN_MAX_HASHES) return SEEN_MAX_HASHES;
    uint32_t k = (uint32_t)ideal;
    return seen_fpp_bloom(n, m, k) <= seen_fpp_bloom(n, m, k + 1) ? k : k + 1;
}

/* Keys per bit that k hashes allow at rate p. */
static double keys_per_bit(double p, uint32_t k)
{
    return -log1p(-pow(p, 1.0 / k)) / k;
}

static uint32_t best_hashes(double p)
{
    double ideal = -log2(p);
    if (!(ideal > 1)) return 1;
    if (ideal >= SEEN_MAX_HASHES) return SEEN_MAX_HASHES;
    uint32_t k = (uint32_t)ideal;
    return keys_per_bit(p, k) >= keys_per_bit(p, k + 1) ? k : k + 1;
}

double seen_bits_for(double n, double p, uint32_t *k)
{
    if (*k == 0) *k = best_hashes(p);
    return n / keys_per_bit(p, *k);
}

double seen_capacity_for(double m, double p, uint32_t *k)
{
    if (*k == 0) *k = best_hashes(p);
    return m * keys_per_bit(p, *k);
}

/* ---- Blocked ------------------------------------------------------------ */

static double power_of_two_times(double x, uint32_t w)
{
    for (; w > 1; w /= 2)
        x *= x;
    return x;
}

static double any_power(double x, uint32_t k)
{
    return pow(x, k);
}

/*
 * The rate of n keys over `lines` lines: a key leaves a bit of its line empty with
 * probability `keep`, and a wrong answer needs `k` bits that are not. Weights of
 * the binomial distribution are taken relative to its peak and divided by their
 * sum, which needs no factorials and cannot overflow.
 */
static double lines_fpp(double n, double lines, double keep, uint32_t k,
                        double (*power)(double x, uint32_t k))
{
    const double tiny = 1e-22;
    double mean = n / lines;
    if (mean * (1 - keep) > 60) return 1;
    /* The positions in a line come from 32 bits of the hash: two keys of one
     * line that agree in those cannot be told apart. */
    double floor_fpp = mean * 0x1p-32;
    if (lines <= 1) return fmin(1, power(1 - pow(keep, n), k) + floor_fpp);

    double odds = 1 / (lines - 1);
    double peak = floor((n + 1) / lines);
    if (peak > n) peak = n;
    double empty_at_peak = pow(keep, peak);
    double total = 0, wrong = 0;

    double weight = 1, empty = empty_at_peak;
    for (double j = peak; weight > tiny; j++) {
        total += weight;
        wrong += weight * power(1 - empty, k);
        weight *= (n - j) / (j + 1) * odds;
        empty *= keep;
    }
    weight = 1, empty = empty_at_peak;
    for (double j = peak; j > 0; j--) {
        weight *= j / ((n - j + 1) * odds);
        if (weight <= tiny) break;
        empty /= keep;
        total += weight;
        wrong += weight * power(1 - empty, k);
    }
    return fmin(1, wrong / total + floor_fpp);
}

/* One region: w bits, one in each of w groups of a line. */
static double region_fpp(double n, double lines, uint32_t w)
{
    return lines_fpp(n, lines, 1 - (double)w / LINE_BITS, w,
                     power_of_two_times);
}

double seen_fpp_lines(double n, double lines, uint32_t line_bits, uint32_t k,
                      bool grouped)
{
    if (!(lines >= 1) || !line_bits || !k) return 1;
    if (n < 1) return 0;
    double keep =
        grouped ? 1 - (double)k / line_bits : pow(1 - 1.0 / line_bits, k);
    return lines_fpp(n, lines, keep, k, any_power);
}

double seen_fpp_blocked(uint64_t n, uint64_t lines, uint32_t regions,
                        uint32_t bits_per_line)
{
    bool shaped = bits_per_line == 1 || bits_per_line == 2 ||
                  bits_per_line == 4 || bits_per_line == 8;
    if (regions == 0 || lines < regions || !shaped) return NAN;
    if (n == 0) return 0;
    uint64_t count = lines / regions;
    return pow(region_fpp((double)n, (double)count, bits_per_line), regions);
}

static double layout_fpp(uint64_t n, const struct seen_line_layout *l)
{
    return seen_fpp_blocked(n, l->count * l->regions, l->regions, l->per_line);
}

/* Fewest lines of a region for n keys at rate p; 0 if more than 2^48 bits. */
static uint64_t region_lines(double n, double p, uint32_t w)
{
    const double most = (double)(SEEN_MAX_BITS / LINE_BITS);
    if (region_fpp(n, 1, w) <= p) return 1;

    /* A line of the classic filter's fill is a lower bound; go up from there,
     * then halve the interval. The rate falls steadily with the lines. */
    double low = fmax(1, n * w / (-log1p(-pow(p, 1.0 / w)) * LINE_BITS) / 2);
    double high = low * 2;
    while (region_fpp(n, high, w) > p) {
        low = high;
        high *= 1.25;
        if (high > most) return 0;
    }
    while (high - low > fmax(0.5, high * 1e-9)) {
        double middle = (low + high) / 2;
        *(region_fpp(n, middle, w) > p ? &low : &high) = middle;
    }
    double lines = ceil(high);
    if (lines > 1 && region_fpp(n, lines - 1, w) <= p) lines--;
    return lines <= most ? (uint64_t)lines : 0;
}

/* k of a blocked filter: a power of two up to 8 in one line, or lines of 8. */
static bool shape_of(uint32_t hashes, struct seen_line_layout *l)
{
    if (hashes == 1 || hashes == 2 || hashes == 4) {
        *l = (struct seen_line_layout){0, 1, hashes};
        return true;
    }
    *l = (struct seen_line_layout){0, hashes / 8, 8};
    return hashes > 0 && hashes % 8 == 0 && l->regions <= SEEN_MAX_REGIONS;
}

bool seen_line_layout_takes(uint32_t hashes)
{
    struct seen_line_layout l;
    return shape_of(hashes, &l);
}

static uint64_t layout_lines(const struct seen_line_layout *l)
{
    return l->count * l->regions;
}

/* The layout of so many bits a key, with the fewest lines; count 0: none. */
static struct seen_line_layout layout_of(double n, double p, uint32_t hashes)
{
    struct seen_line_layout l;
    if (!shape_of(hashes, &l)) return (struct seen_line_layout){0};
    l.count = region_lines(n, pow(p, 1.0 / l.regions), l.per_line);
    if (layout_lines(&l) > SEEN_MAX_BITS / LINE_BITS) l.count = 0;
    return l;
}

/*
 * One more line of a key must pay for its cache miss: so there are r + 1 regions
 * only where they save a twentieth of the lines that r would take (or a tenth). At
 * the rate where that begins, which hardly depends on n, the lines would drop. But
 * a lower rate must not give a smaller filter: from there on a layout of r + 1
 * regions has no fewer lines than the last one of r had, and a better rate than
 * asked for until it needs them.
 *
 *     lines |  one region   .'
 *           |             .'____   two, no fewer than one had
 *           |           .'    .'
 *           |        .'     .'     two, the fewest
 *           +--------------------- rate, falling
 *
 * Rates below which r + 1 regions pay, r = 1, 2, ...: where region_lines() of a
 * million keys gives that ratio.
 */
static const double pays[][SEEN_MAX_REGIONS - 1] = {
    [SEEN_SAVES_TWENTIETH] = {4.64e-4, 5.34e-7, 3.30e-10, 1.01e-13, 1.52e-17,
                              1.14e-21, 4.23e-26, 7.96e-31, 7.72e-36, 3.96e-41,
                              1.08e-46, 1.58e-52, 1.29e-58, 5.90e-65, 1.53e-71},
    [SEEN_SAVES_TENTH] = {2.09e-4, 4.94e-8, 3.05e-12, 4.78e-17, 2.00e-22,
                          2.39e-28, 8.70e-35, 1.04e-41, 4.35e-49, 6.86e-57,
                          4.35e-65, 3.68e-73, 3.68e-79, 3.68e-85, 3.68e-91}};

/* More bits in the same line are welcome unless they cost something. */
static struct seen_line_layout one_region(double n, double p, uint32_t least)
{
    struct seen_line_layout best = {0};
    for (uint32_t k = least; k <= 8; k *= 2) {
        struct seen_line_layout l = layout_of(n, p, k);
        if (l.count && (!best.count || (double)layout_lines(&l) <
                                           1.02 * (double)layout_lines(&best)))
            best = l;
    }
    return best;
}

bool seen_line_layout_paying(uint64_t n, double p, enum seen_saves saves,
                             uint32_t least, struct seen_line_layout *out)
{
    const double *below = pays[saves];
    uint32_t r = 1;
    uint64_t floor = 0;
    for (; r < SEEN_MAX_REGIONS && p < below[r - 1]; r++) {
        struct seen_line_layout last =
            r == 1 ? one_region((double)n, below[0], least)
                   : layout_of((double)n, below[r - 1], 8 * r);
        if (layout_lines(&last) > floor) floor = layout_lines(&last);
    }
    struct seen_line_layout l = r == 1 ? one_region((double)n, p, least)
                                       : layout_of((double)n, p, 8 * r);
    if (l.count == 0) return false;
    if (layout_lines(&l) < floor) l.count = (floor + r - 1) / r;
    *out = l;
    return true;
}

bool seen_line_layout_for(uint64_t n, double p, uint32_t hashes,
                          struct seen_line_layout *out)
{
    if (!hashes)
        return seen_line_layout_paying(n, p, SEEN_SAVES_TWENTIETH, 1, out);
    struct seen_line_layout l = layout_of((double)n, p, hashes);
    if (l.count) *out = l;
    return l.count != 0;
}

bool seen_line_layout_within(uint64_t n, uint64_t lines, uint32_t hashes,
                             struct seen_line_layout *out)
{
    struct seen_line_layout best = {0};
    double best_fpp = 0;
    const uint32_t first = hashes ? hashes : 1;
    const uint32_t last = hashes ? hashes : 8 * SEEN_MAX_REGIONS;

    for (uint32_t k = first; k <= last; k++) {
        struct seen_line_layout l;
        if (!shape_of(k, &l) || lines < l.regions) continue;
        l.count = lines / l.regions;
        double fpp = layout_fpp(n, &l);
        double worth = l.regions > 1 ? 0.5 : 1.02;
        if (best.count == 0 || fpp < worth * best_fpp) {
            best = l;
            best_fpp = fpp;
        } else if (l.regions > 2) {
            break;
        }
    }
    if (best.count) *out = best;
    return best.count != 0;
}

uint64_t seen_line_layout_capacity(const struct seen_line_layout *l, double p)
{
    if (layout_fpp(1, l) > p) return 0;
    uint64_t low = 1, high = 2;
    while (layout_fpp(high, l) <= p) {
        low = high;
        high *= 2;
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        *(layout_fpp(middle, l) > p ? &high : &low) = middle;
    }
    return low;
}

/* ---- All kinds ---------------------------------------------------------- */

uint32_t seen_hash_bits_for(double n, double p, const seen_spec *spec)
{
    bool fits_64 = n * 1000 * 0x1p-64 <= p;
    if (fits_64 && !(spec->flags & SEEN_KEYED)) return 64;
    /* One bit of 128 is lost in probe/native.h. */
    bool fits_128 = n * 1000 * 0x1p-127 <= p;
    return fits_128 || !(spec->fpp > 0) ? 128 : 0;
}

double seen_hash_fpp(double n, uint32_t hash_bits)
{
    return n * (hash_bits == 64 ? 0x1p-64 : 0x1p-127);
}

uint64_t seen_plan_items(const seen_plan *plan, uint64_t bits_set)
{
    double n = seen_items_from_fill((double)bits_set, (double)plan->bits,
                                    plan->hashes);
    return n < 0x1p63 ? (uint64_t)(n + 0.5) : UINT64_MAX;
}

double seen_fpp_combined(const double *fpp, size_t n)
{
    double log_right = 0;
    for (size_t i = 0; i < n; i++)
        log_right += log1p(-fpp[i]);
    return 0 - expm1(log_right);
}

double seen_items_from_fill(double set, double m, double k)
{
    if (set >= m) return INFINITY;
    return log1p(-set / m) / (k * log1p(-1 / m));
}
