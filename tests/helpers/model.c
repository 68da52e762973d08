/* model.c - plain arrays; slow, short and obviously right. */
#include "helpers/model.h"

#include <stdlib.h>
#include <string.h>

static void *get(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p) abort();
    return p;
}

/* ---- A bitmap ----------------------------------------------------------- */

struct model_bits model_bits_new(uint64_t n)
{
    return (struct model_bits){get((size_t)n, sizeof(bool)), n};
}

void model_bits_free(struct model_bits *m)
{
    free(m->bit);
}

void model_fill(struct model_bits *m, uint64_t from, uint64_t to, bool value)
{
    for (uint64_t i = from; i < to; i++)
        m->bit[i] = value;
}

uint64_t model_count(const struct model_bits *m, uint64_t from, uint64_t to)
{
    uint64_t count = 0;
    for (uint64_t i = from; i < to && i < m->n; i++)
        count += m->bit[i];
    return count;
}

uint64_t model_find(const struct model_bits *m, uint64_t from, bool value)
{
    for (uint64_t i = from; i < m->n; i++)
        if (m->bit[i] == value) return i;
    return UINT64_MAX;
}

/* ---- An exact set ------------------------------------------------------- */

struct model_set model_set_new(void)
{
    return (struct model_set){get(64, 8), 64, 0, false};
}

void model_set_free(struct model_set *s)
{
    free(s->slots);
}

static uint64_t *slot_of(const struct model_set *s, uint64_t x)
{
    size_t i = (size_t)(x * 0x9e3779b97f4a7c15u >> 20) & (s->cap - 1);
    while (s->slots[i] && s->slots[i] != x)
        i = (i + 1) & (s->cap - 1);
    return &s->slots[i];
}

bool model_set_has(const struct model_set *s, uint64_t x)
{
    return x ? *slot_of(s, x) == x : s->has_zero;
}

static void grow(struct model_set *s)
{
    struct model_set next = {get(s->cap * 2, 8), s->cap * 2, s->used,
                             s->has_zero};
    for (size_t i = 0; i < s->cap; i++)
        if (s->slots[i]) *slot_of(&next, s->slots[i]) = s->slots[i];
    free(s->slots);
    *s = next;
}

bool model_set_add(struct model_set *s, uint64_t x)
{
    bool before = model_set_has(s, x);
    if (before) return true;
    if (x == 0) {
        s->has_zero = true;
        return false;
    }
    if (s->used * 2 >= s->cap) grow(s);
    *slot_of(s, x) = x;
    s->used++;
    return false;
}

uint64_t model_set_count(const struct model_set *s)
{
    return s->used + s->has_zero;
}
