// leveldb_block.cc - LevelDB's own filter policy, on the command line.
//
//   leveldb_block build BITS_PER_KEY < KEYS > BLOCK
//   leveldb_block check BITS_PER_KEY BLOCK < KEYS     prints the keys that may match
//   leveldb_block time  BITS_PER_KEY BLOCK < KEYS     prints ns per KeyMayMatch()
//
// Keys are hex, one a line, - is the empty key.
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

static std::string FromHex(const std::string &line)
{
    std::string key;
    for (size_t i = 0; line != "-" && i + 1 < line.size(); i += 2)
        key.push_back((char)strtoul(line.substr(i, 2).c_str(), nullptr, 16));
    return key;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    const leveldb::FilterPolicy *policy =
        leveldb::NewBloomFilterPolicy(atoi(argv[2]));
    std::vector<std::string> lines, keys;
    for (std::string line; std::getline(std::cin, line);) {
        lines.push_back(line);
        keys.push_back(FromHex(line));
    }
    if (strcmp(argv[1], "build") == 0) {
        std::vector<leveldb::Slice> slices(keys.begin(), keys.end());
        std::string block;
        policy->CreateFilter(slices.data(), (int)slices.size(), &block);
        std::cout << block;
        return 0;
    }
    if (argc < 4) return 2;
    std::ifstream in(argv[3], std::ios::binary);
    std::string block((std::istreambuf_iterator<char>(in)),
                      std::istreambuf_iterator<char>());
    if (strcmp(argv[1], "check") == 0) {
        for (size_t i = 0; i < keys.size(); i++)
            if (policy->KeyMayMatch(keys[i], block))
                std::puts(lines[i].c_str());
        return 0;
    }
    const size_t piece = 2048;
    std::vector<double> best(keys.size() / piece + 1, 1e18);
    size_t found = 0;
    for (int round = 0; round < 20; round++)
        for (size_t at = 0; at < keys.size(); at += piece) {
            size_t end = std::min(keys.size(), at + piece);
            auto start = std::chrono::steady_clock::now();
            for (size_t i = at; i < end; i++)
                found += policy->KeyMayMatch(keys[i], block);
            std::chrono::duration<double, std::nano> took =
                std::chrono::steady_clock::now() - start;
            best[at / piece] = std::min(best[at / piece], took.count());
        }
    double sum = 0;
    for (size_t at = 0; at < keys.size(); at += piece)
        sum += best[at / piece];
    std::printf("%.1f\n", sum / (double)keys.size());
    return found > 0 ? 0 : 1;
}
