/*
 * 03_bitmap.c - which of a hundred seats are taken? Small integers need no
 * hash: a bitmap is exact, and sets of them combine like sets.
 */
#include <seen_bitmap.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int report(const seen_bitmap *taken)
{
    printf("taken: %" PRIu64 ", first free: %" PRIu64 "\n",
           seen_bitmap_count(taken), seen_bitmap_next_clear(taken, 0));

    /* Out to bytes and back, as if through a file. */
    size_t len;
    if (seen_bitmap_save(taken, NULL, 0, &len) != SEEN_SHORT) return 1;
    void *bytes = malloc(len);
    seen_bitmap *again = NULL;
    int bad = !bytes || seen_bitmap_save(taken, bytes, len, &len) ||
              seen_bitmap_load(&again, bytes, len, NULL, NULL) ||
              !seen_bitmap_equal(taken, again);
    printf("%zu bytes, %s\n", len, bad ? "damaged" : "intact");
    seen_bitmap_free(again);
    free(bytes);
    return bad;
}

int main(void)
{
    seen_bitmap *booked, *occupied;
    if (seen_bitmap_new(&booked, 100, NULL, NULL)) return 1;
    if (seen_bitmap_new(&occupied, 100, NULL, NULL)) {
        seen_bitmap_free(booked);
        return 1;
    }

    seen_bitmap_set_range(booked, 0, 10); /* a group */
    seen_bitmap_set(occupied, 3);
    seen_bitmap_set(occupied, 42);

    seen_bitmap_or(booked, occupied);
    for (uint64_t seat = seen_bitmap_next_set(booked, 10); seat != SEEN_NO_BIT;
         seat = seen_bitmap_next_set(booked, seat + 1))
        printf("seat %" PRIu64 " is taken outside the group\n", seat);

    /* A seat that does not exist is never taken and cannot be. */
    int bad = seen_bitmap_has(booked, 100) ||
              seen_bitmap_set(booked, 100) != SEEN_INVALID || report(booked);
    seen_bitmap_free(occupied);
    seen_bitmap_free(booked);
    return bad;
}
