/*
 * alloc.c - the only place that takes memory from anybody.
 *
 * The system's allocator has two sizes of door. Below 2 MiB, calloc. From
 * there up, pages straight from the kernel: they come zeroed without being
 * touched, a filter that is never filled costs nothing, and huge pages can be
 * asked for: fewer TLB misses for a filter in DRAM. (At 126 MB raw random reads
 * gained 5-10 % from them, filter lookups nothing that could be measured; they
 * cost nothing either.)
 *
 * A block from a user's allocator is made one line longer and aligned inside:
 *
 *     raw                 aligned                          raw + size + 64
 *      |<-- pad 1..64 -->|<------------- size ------------>|  rest  |
 *                       ^ the byte before holds pad
 *
 * A small block, which has no lines, only 16 bytes longer.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise, mremap */

#include "base/alloc.h"

#include "base/base.h"
#include "base/checked.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

static bool is_default(const seen_allocator *a)
{
    return a->alloc == NULL;
}

const seen_allocator seen_system_memory = {0};

seen_allocator seen_allocator_or_default(const seen_allocator *wanted)
{
    return wanted ? *wanted : (seen_allocator){0};
}

/* Reserve one huge page too much, then give back what lies before and after. */
static void *map_pages(size_t size)
{
    size_t room = size + HUGE_PAGE;
    uint8_t *raw = mmap(NULL, room, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED) return NULL;

    size_t before = (HUGE_PAGE - (uintptr_t)raw % HUGE_PAGE) % HUGE_PAGE;
    uint8_t *start = raw + before;
    if (before) munmap(raw, before);
    munmap(start + size, room - before - size);
#ifdef MADV_HUGEPAGE
    madvise(start, size, MADV_HUGEPAGE); /* a wish; refusal costs speed only */
#endif
    return start;
}

/* Whole huge pages, so that the end can be handed to munmap as it is. */
static size_t mapped_size(uint64_t size)
{
    return (size_t)(size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

static uint8_t *align_inside(uint8_t *raw, size_t align)
{
    size_t pad = align - (uintptr_t)raw % align;
    raw[pad - 1] = (uint8_t)pad;
    return raw + pad;
}

static void *take_aligned(const seen_allocator *a, size_t size, size_t align)
{
    size_t room = size + align;
    uint8_t *raw = is_default(a) ? calloc(1, room) : a->alloc(a->ctx, room);
    if (!raw) return NULL;
    if (!is_default(a)) memset(raw, 0, room);
    return align_inside(raw, align);
}

static void give_aligned(const seen_allocator *a, uint8_t *at, size_t size,
                         size_t align)
{
    uint8_t *raw = at - at[-1];
    if (is_default(a))
        free(raw);
    else
        a->release(a->ctx, raw, size + align);
}

void *seen_alloc_zeroed(const seen_allocator *a, uint64_t size)
{
    if (!seen_size_fits(size) || size > PTRDIFF_MAX - 2 * HUGE_PAGE)
        return NULL;
    if (is_default(a) && size >= HUGE_PAGE) return map_pages(mapped_size(size));
    return take_aligned(a, (size_t)size, SEEN_LINE_SIZE);
}

void seen_release(const seen_allocator *a, void *ptr, uint64_t size)
{
    if (!ptr) return;
    if (is_default(a) && size >= HUGE_PAGE) {
        munmap(ptr, mapped_size(size));
        return;
    }
    give_aligned(a, ptr, (size_t)size, SEEN_LINE_SIZE);
}

void *seen_alloc_small(const seen_allocator *a, uint64_t size)
{
    if (!seen_size_fits(size) || size > PTRDIFF_MAX / 2) return NULL;
    return take_aligned(a, (size_t)size, SEEN_SMALL_ALIGN);
}

void seen_release_small(const seen_allocator *a, void *ptr, uint64_t size)
{
    if (ptr) give_aligned(a, ptr, (size_t)size, SEEN_SMALL_ALIGN);
}

void seen_release_piece(const seen_allocator *a, void *piece, uint64_t size)
{
    if (is_default(a) && size >= HUGE_PAGE)
        madvise(piece, SEEN_PIECE, MADV_DONTNEED);
}

/*
 * The kernel would take the pages back, zero others and hand those out, all at
 * the price of page faults. Zeroing what is in the cache and moving it over is
 * several times as cheap. DONTUNMAP leaves the old range mapped, so no other
 * thread can move in before the block is released.
 */
void seen_recycle_piece(const seen_allocator *a, void *piece, uint64_t size,
                        void *to)
{
    if (!is_default(a) || size < HUGE_PAGE) return;
#ifdef MREMAP_DONTUNMAP
    memset(piece, 0, SEEN_PIECE);
    if (mremap(piece, SEEN_PIECE, SEEN_PIECE,
               MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
               to) != MAP_FAILED)
        return;
    /* It may have failed after taking away what was at `to`. */
    mmap(to, SEEN_PIECE, PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
#endif
    (void)to;
    seen_release_piece(a, piece, size);
}
