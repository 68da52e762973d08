/*
 * peer_leveldb.cc - LevelDB's filter policy, called as its table reader calls
 * it. The C interface has the policy but not its KeyMayMatch, hence C++.
 *
 * The filter is built from all keys at once: add() collects, seal() builds.
 */
#include "peer.h"

#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace
{

struct Filter {
    std::unique_ptr<const leveldb::FilterPolicy> policy;
    std::string bytes; /* of the keys, until sealed */
    std::vector<size_t> ends;
    std::string filter;
};

/* ln(1/p) / ln(2)^2 bits per key, rounded: 10 for 1 %. */
void *make(size_t items, double fpp)
{
    auto f = std::make_unique<Filter>();
    const int bits = static_cast<int>(std::lround(-std::log(fpp) / 0.480453));
    f->policy.reset(leveldb::NewBloomFilterPolicy(bits));
    f->ends.reserve(items);
    return f.release();
}

void add(void *peer, const seen_key *keys, size_t n)
{
    auto *f = static_cast<Filter *>(peer);
    for (size_t i = 0; i < n; i++) {
        f->bytes.append(static_cast<const char *>(keys[i].data), keys[i].len);
        f->ends.push_back(f->bytes.size());
    }
}

void seal(void *peer)
{
    auto *f = static_cast<Filter *>(peer);
    std::vector<leveldb::Slice> slices;
    size_t at = 0;
    for (size_t end : f->ends) {
        slices.emplace_back(f->bytes.data() + at, end - at);
        at = end;
    }
    f->policy->CreateFilter(slices.data(), static_cast<int>(slices.size()),
                            &f->filter);
    f->bytes = std::string();
    f->ends = std::vector<size_t>();
}

void maybe(void *peer, const seen_key *keys, size_t n, bool *answers)
{
    const auto *f = static_cast<const Filter *>(peer);
    const leveldb::Slice filter(f->filter);
    for (size_t i = 0; i < n; i++)
        answers[i] = f->policy->KeyMayMatch(
            leveldb::Slice(static_cast<const char *>(keys[i].data),
                           keys[i].len),
            filter);
}

void release(void *peer)
{
    delete static_cast<Filter *>(peer);
}

} // namespace

extern "C" const struct bench_peer bench_leveldb = {
    "LevelDB", nullptr, make, add, seal, maybe, release};
