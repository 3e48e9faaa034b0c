// SPDX-License-Identifier: Apache-2.0
// A C++17 program of an embedding project: ranks as threads, and a sum over all of them.
#include <tutti.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

static void must(tuttiResult_t result, const std::string &call)
{
    if (result == tuttiSuccess)
        return;
    std::fprintf(stderr, "%s: %s\n", call.c_str(), tuttiGetLastError(nullptr));
    std::exit(1);
}

int main()
{
    constexpr int nranks = 3;
    std::vector<tuttiComm_t> comms(nranks);
    std::vector<double> sums(nranks);
    std::vector<std::thread> threads;

    must(tuttiCommInitAll(comms.data(), nranks, nullptr), "tuttiCommInitAll");
    for (int rank = 0; rank < nranks; rank++)
        threads.emplace_back([&, rank] {
            double mine = rank + 1;
            auto comm = comms[static_cast<size_t>(rank)];
            must(tuttiAllReduce(&mine, &sums[static_cast<size_t>(rank)], 1, tuttiFloat64, tuttiSum, comm,
                                nullptr),
                 "tuttiAllReduce");
            must(tuttiCommDestroy(comm), "tuttiCommDestroy");
        });
    for (auto &thread : threads)
        thread.join();
    const double total = std::accumulate(sums.begin(), sums.end(), 0.0);
    std::printf("total %g\n", total);
    return total == 18 ? 0 : 1;
}
