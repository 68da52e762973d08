/*
 * pages.c - is all of an LMDB file there?
 *
 * LMDB maps data.mdb and trusts it: a copy that was cut short is SIGBUS when a page
 * behind its end is read. The file says which page is its last one, and as a rule
 * it is that long. But not always: pages that a transaction took from the end of the
 * file and gave back before it was committed are never written. So a file that is
 * long enough is whole, and of one that is not every page that its trees lead to is
 * looked for:
 *
 *     meta (pages 0 and 1, the higher transaction counts)
 *       free   B+tree of pages that can be used again
 *       main   B+tree:  "users" ──► B+tree,  "seen" ──► B+tree
 *
 * That reads all branches and leaves, once; values that have pages of their own
 * (overflow) need not be read, a leaf says how long they are. Writers make the file
 * as long as it says after each transaction (backend_lmdb.c), so this happens after a
 * power cut in between, and with copies that were cut short.
 *
 * A page of LMDB 0.9, data version 1, W being the bytes of a size_t:
 *
 *     0      W  its number
 *     W+2    2  flags: 1 branch, 2 leaf, 8 meta
 *     W+4    2  where its list of nodes ends
 *     W+8    .. offsets of nodes, 2 bytes each
 *
 * a node:
 *
 *     0      4  leaf: length of the value; branch: low bits of the page
 *     4      2  leaf: flags, 1 the value is the number of a page, 2 it is a tree;
 *               branch: high bits of the page, where W is 8
 *     6      2  length of the key
 *     8      .. key, value
 *
 * a tree: 8 bytes (in that of `free`, the first 4 are the size of a page), W each
 * for branches, leaves, overflow pages and entries, and W: its root, or all bits;
 * a meta page, behind its first W+8 bytes:
 *
 *     0      4  be ef c0 de
 *     4      4  data version: 1
 *     8      2W
 *     8+2W   .. trees: free, main
 *            W  number of the last page
 *            W  transaction
 *
 * Numbers are in the machine's byte order. Whatever is not like this is left to
 * LMDB, which checks its meta pages itself.
 */
#include "users/pages.h"

#include "base/bytes.h"
#include "base/error.h"
#include "store/io.h"

#include <inttypes.h>
#include <stdlib.h>

#define MAGIC     0xbeefc0deu
#define VERSION   1
#define WORD      sizeof(size_t)
#define HEAD      (WORD + 8) /* bytes before a page's list */
#define NODE      8          /* bytes before a key */
#define TREE      (8 + 5 * WORD)
#define META      (8 + 2 * WORD + 2 * TREE + 2 * WORD)
#define PAGE_MAX  65536
#define PAGE_ROOM 4096 /* of a meta page, whatever its size */
#define DEPTH     32   /* of a tree, as LMDB has it */
#define TREES     8    /* ours has four */
#define ATTEMPTS  100

enum {
    IS_BRANCH = 1,
    IS_LEAF = 2,
    HAS_PAGE = 1,
    HAS_TREE = 2
};

struct meta {
    uint64_t page; /* bytes of one */
    uint64_t last; /* number of the last one */
    uint64_t transaction;
    uint64_t root[2];
};

struct level {
    uint8_t *page;
    size_t at, n; /* nodes */
};

struct walk {
    int fd;
    uint64_t size; /* of the file */
    uint64_t page;
    uint64_t left; /* pages that may still be visited: trees have no circles */
    uint64_t root[TREES];
    size_t trees;
    struct level levels[DEPTH];
    seen_error *error;
};

static uint64_t word(const uint8_t *p)
{
    return WORD == 8 ? seen_get_le64(p) : seen_get_le32(p);
}

/* All bits: a tree without pages. */
static uint64_t root_of(const uint8_t *tree)
{
    uint64_t root = word(tree + TREE - WORD);
    return root == (uint64_t)SIZE_MAX ? 0 : root;
}

static seen_status too_short(uint64_t size, uint64_t least, seen_error *error)
{
    return seen_fail(error, SEEN_CORRUPT, NULL,
                     "data.mdb: %" PRIu64 " bytes, expected at least %" PRIu64
                     ": the copy is incomplete",
                     size, least);
}

static seen_status damaged(const struct walk *w, uint64_t number)
{
    return seen_fail(w->error, SEEN_CORRUPT, NULL,
                     "data.mdb: page %" PRIu64 " is damaged", number);
}

/* ---- Trees -------------------------------------------------------------- */

/* Are so many pages there, from this one on? */
static seen_status need(const struct walk *w, uint64_t number, uint64_t n)
{
    uint64_t most = (uint64_t)INT64_MAX / w->page;
    if (number < 2 || number > most || n > most - number)
        return damaged(w, number);
    uint64_t end = (number + n) * w->page;
    return end <= w->size ? SEEN_OK : too_short(w->size, end, w->error);
}

static seen_status read_page(struct walk *w, uint64_t number, struct level *l)
{
    size_t got = 0;
    seen_status status = need(w, number, 1);
    if (status != SEEN_OK) return status;
    if (w->left-- == 0) return damaged(w, number);
    if (!l->page) l->page = malloc((size_t)w->page);
    if (!l->page) return SEEN_NOMEM;
    if (seen_io_read_at(w->fd, l->page, (size_t)w->page, number * w->page,
                        &got) != SEEN_OK)
        return seen_fail_io(w->error, NULL, "read data.mdb");
    if (got < w->page)
        return too_short(number * w->page + got, (number + 1) * w->page,
                         w->error);
    size_t end = seen_get_le16(l->page + WORD + 4);
    unsigned kind = seen_get_le16(l->page + WORD + 2) & (IS_BRANCH | IS_LEAF);
    if (word(l->page) != number || end < HEAD || end > w->page ||
        (kind != IS_BRANCH && kind != IS_LEAF))
        return damaged(w, number);
    l->at = 0;
    l->n = (end - HEAD) / 2;
    return SEEN_OK;
}

/* A value with pages of its own, or a tree. */
static seen_status take_leaf(struct walk *w, const uint8_t *page, size_t at)
{
    const uint8_t *node = page + at;
    unsigned flags = seen_get_le16(node + 4);
    at += NODE + seen_get_le16(node + 6);
    if (at > w->page) return damaged(w, word(page));
    const uint8_t *value = page + at;
    size_t room = (size_t)w->page - at;
    if (flags & HAS_PAGE) {
        uint64_t bytes = HEAD + (uint64_t)seen_get_le32(node);
        if (room < WORD) return damaged(w, word(page));
        return need(w, word(value), (bytes + w->page - 1) / w->page);
    }
    if (flags & HAS_TREE) {
        if (room < TREE || w->trees == TREES) return damaged(w, word(page));
        w->root[w->trees++] = root_of(value);
    }
    return SEEN_OK;
}

static uint64_t child_of(const uint8_t *node)
{
    uint64_t high = WORD == 8 ? seen_get_le16(node + 4) : 0;
    return seen_get_le32(node) | high << 32;
}

static seen_status walk_tree(struct walk *w, uint64_t root)
{
    size_t depth = 0;
    if (!root) return SEEN_OK;
    seen_status status = read_page(w, root, &w->levels[0]);
    while (status == SEEN_OK) {
        struct level *l = &w->levels[depth];
        if (l->at == l->n) {
            if (depth-- == 0) break;
            continue;
        }
        const uint8_t *page = l->page;
        size_t offset = seen_get_le16(page + HEAD + 2 * l->at++);
        if (offset < HEAD || offset + NODE > w->page)
            return damaged(w, word(page));
        if (seen_get_le16(page + WORD + 2) & IS_LEAF)
            status = take_leaf(w, page, offset);
        else if (depth + 1 == DEPTH)
            status = damaged(w, word(page));
        else
            status = read_page(w, child_of(page + offset), &w->levels[++depth]);
    }
    return status;
}

static seen_status walk_trees(int fd, uint64_t size, const struct meta *m,
                              seen_error *error)
{
    struct walk w = {.fd = fd,
                     .size = size,
                     .page = m->page,
                     .left = size / m->page,
                     .root = {m->root[0], m->root[1]},
                     .trees = 2,
                     .error = error};
    seen_status status = SEEN_OK;
    for (size_t i = 0; i < w.trees && status == SEEN_OK; i++)
        status = walk_tree(&w, w.root[i]);
    for (size_t i = 0; i < DEPTH; i++)
        free(w.levels[i].page);
    return status;
}

/* ---- The file ----------------------------------------------------------- */

/* SEEN_ABSENT: LMDB knows better. */
static seen_status read_meta(int fd, uint64_t size, uint64_t at,
                             struct meta *out, seen_error *error)
{
    uint8_t bytes[HEAD + META];
    size_t got;
    if (seen_io_read_at(fd, bytes, sizeof bytes, at, &got) != SEEN_OK)
        return seen_fail_io(error, NULL, "read data.mdb");
    if (got < sizeof bytes)
        return too_short(size, at ? 2 * at : 2 * PAGE_ROOM, error);
    const uint8_t *p = bytes + HEAD, *trees = p + 8 + 2 * WORD;
    *out = (struct meta){.page = seen_get_le32(trees),
                         .last = word(trees + 2 * TREE),
                         .transaction = word(trees + 2 * TREE + WORD),
                         .root = {root_of(trees), root_of(trees + TREE)}};
    bool known = seen_get_le32(p) == MAGIC && seen_get_le32(p + 4) == VERSION &&
                 out->page >= sizeof bytes && out->page <= PAGE_MAX &&
                 (out->page & (out->page - 1)) == 0;
    return known ? SEEN_OK : SEEN_ABSENT;
}

/* The one that counts. */
static seen_status newest_meta(int fd, uint64_t size, struct meta *out,
                               seen_error *error)
{
    struct meta other;
    seen_status status = read_meta(fd, size, 0, out, error);
    if (status != SEEN_OK) return status;
    if (size < 2 * out->page) return too_short(size, 2 * out->page, error);
    status = read_meta(fd, size, out->page, &other, error);
    if (status == SEEN_OK && other.transaction > out->transaction) *out = other;
    return status;
}

static bool long_enough(uint64_t size, const struct meta *m)
{
    return size / m->page > m->last;
}

/* A writer that has begun another transaction may use pages again that we are
 * looking at: then what was found means nothing. */
static seen_status check_once(int fd, bool *settled, seen_error *error)
{
    struct seen_stat st;
    struct meta m = {0}, later;
    *settled = true;
    if (seen_os->fstat(fd, &st) != 0)
        return seen_fail_io(error, NULL, "data.mdb");
    seen_status status = newest_meta(fd, st.size, &m, error);
    /* Once more: a transaction that we see has its pages in the file. */
    if (seen_os->fstat(fd, &st) != 0)
        return seen_fail_io(error, NULL, "data.mdb");
    if (status == SEEN_ABSENT ||
        (status == SEEN_OK && long_enough(st.size, &m)))
        return SEEN_OK;
    if (status == SEEN_OK) status = walk_trees(fd, st.size, &m, error);
    if (status == SEEN_CORRUPT &&
        newest_meta(fd, st.size, &later, NULL) == SEEN_OK)
        *settled = later.transaction == m.transaction;
    return status;
}

seen_status seen_pages_check(int fd, seen_error *error)
{
    if (!SEEN_LITTLE_ENDIAN) return SEEN_OK;
    seen_status status = SEEN_OK;
    bool settled = false;
    for (int i = 0; i < ATTEMPTS && !settled; i++) {
        seen_error_begin(error);
        status = check_once(fd, &settled, error);
    }
    return status;
}
