/* counted_leveldb.cc - see counted_leveldb.h. */
#include "counted_leveldb.h"

#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace
{

class CountedFile : public leveldb::RandomAccessFile
{
  public:
    CountedFile(leveldb::RandomAccessFile *file, std::atomic<uint64_t> *reads)
        : file_(file), reads_(reads)
    {
    }

    leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice *result,
                         char *scratch) const override
    {
        reads_->fetch_add(1, std::memory_order_relaxed);
        return file_->Read(offset, n, result, scratch);
    }

  private:
    std::unique_ptr<leveldb::RandomAccessFile> file_;
    std::atomic<uint64_t> *reads_;
};

class CountedEnv : public leveldb::EnvWrapper
{
  public:
    CountedEnv() : EnvWrapper(leveldb::Env::Default())
    {
    }

    leveldb::Status
    NewRandomAccessFile(const std::string &name,
                        leveldb::RandomAccessFile **file) override
    {
        leveldb::Status status = target()->NewRandomAccessFile(name, file);
        if (status.ok()) *file = new CountedFile(*file, &reads);
        return status;
    }

    std::atomic<uint64_t> reads{0};
};

/* What the C interface calls leveldb_filterpolicy_t is one: LevelDB's db/c.cc. */
const leveldb::FilterPolicy *policy_of(const leveldb_filterpolicy_t *policy)
{
    return reinterpret_cast<const leveldb::FilterPolicy *>(policy);
}

void must(const leveldb::Status &status)
{
    if (status.ok()) return;
    std::fprintf(stderr, "leveldb: %s\n", status.ToString().c_str());
    std::exit(1);
}

constexpr int batch_of = 1000;

} // namespace

struct counted_db {
    CountedEnv env;
    std::unique_ptr<leveldb::DB> db;
    leveldb::WriteBatch batch;
    int waiting = 0;
    std::string value;
};

namespace
{

void write_waiting(counted_db *db)
{
    must(db->db->Write(leveldb::WriteOptions(), &db->batch));
    db->batch.Clear();
    db->waiting = 0;
}

} // namespace

counted_db *counted_open(const char *path, leveldb_filterpolicy_t *policy,
                         size_t memory)
{
    auto db = std::make_unique<counted_db>();
    leveldb::Options options;
    options.env = &db->env;
    options.create_if_missing = true;
    options.write_buffer_size = memory;
    options.max_open_files = 10000;
    options.filter_policy = policy_of(policy);
    leveldb::DB *opened;
    must(leveldb::DB::Open(options, path, &opened));
    db->db.reset(opened);
    return db.release();
}

void counted_close(counted_db *db)
{
    if (db->waiting) write_waiting(db);
    delete db;
}

void counted_put(counted_db *db, const void *key, size_t len, const void *value,
                 size_t value_len)
{
    db->batch.Put(leveldb::Slice(static_cast<const char *>(key), len),
                  leveldb::Slice(static_cast<const char *>(value), value_len));
    if (++db->waiting == batch_of) write_waiting(db);
}

void counted_compact(counted_db *db)
{
    if (db->waiting) write_waiting(db);
    db->db->CompactRange(nullptr, nullptr);
}

bool counted_get(counted_db *db, const void *key, size_t len)
{
    leveldb::ReadOptions options;
    options.fill_cache = false;
    leveldb::Status status = db->db->Get(
        options, leveldb::Slice(static_cast<const char *>(key), len),
        &db->value);
    if (status.IsNotFound()) return false;
    must(status);
    return true;
}

uint64_t counted_reads(const counted_db *db)
{
    return db->env.reads.load(std::memory_order_relaxed);
}

char *counted_filter(const leveldb_filterpolicy_t *policy,
                     const char *const *keys, const size_t *lens, int n,
                     size_t *len)
{
    std::vector<leveldb::Slice> slices;
    for (int i = 0; i < n; i++)
        slices.emplace_back(keys[i], lens[i]);
    std::string filter;
    policy_of(policy)->CreateFilter(slices.data(), n, &filter);
    char *copy = static_cast<char *>(std::malloc(filter.size() + 1));
    if (!copy) std::abort();
    std::memcpy(copy, filter.data(), filter.size());
    *len = filter.size();
    return copy;
}

bool counted_may_match(const leveldb_filterpolicy_t *policy, const char *key,
                       size_t len, const char *filter, size_t filter_len)
{
    return policy_of(policy)->KeyMayMatch(leveldb::Slice(key, len),
                                          leveldb::Slice(filter, filter_len));
}
