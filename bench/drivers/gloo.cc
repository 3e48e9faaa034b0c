// SPDX-License-Identifier: Apache-2.0
// The driver of Gloo in the comparison, over TCP: gloo DIRECTORY RANK NRANKS STYLE VERSION.
//
// Styles ring and bcube use Gloo's function API, in which a thread of Gloo serves the sockets.
// Styles polling and polling-ring use its older class API, in which the caller polls the sockets.
// The class API is faster at small sizes, but works only in place and has fewer collectives.
#include "driver.h"

#include <gloo/algorithm.h>
#include <gloo/allgather.h>
#include <gloo/allgather_ring.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

std::shared_ptr<gloo::rendezvous::Context> context;
int rank, nranks;
bool is_polling, is_ring;

bool has(bench_collective collective)
{
    if (bench_is_uneven(collective) || bench_is_scan(collective))
        return false;
    if (is_polling)
        return collective != BENCH_ALLTOALL && collective != BENCH_SENDRECV &&
               collective != BENCH_REDUCE;
    return collective != BENCH_REDUCE_SCATTER;
}

// ---- the function API ----

void allreduce(const bench_operation &op)
{
    using Sum = void (*)(void *, const void *, const void *, size_t);
    using Algorithm = gloo::AllreduceOptions::Algorithm;
    gloo::AllreduceOptions options(context);

    options.setAlgorithm(is_ring ? Algorithm::RING : Algorithm::BCUBE);
    options.setInput(const_cast<float *>(op.send), op.count);
    options.setOutput(op.recv, op.count);
    options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
    gloo::allreduce(options);
}

void reduce(const bench_operation &op)
{
    using Sum = void (*)(void *, const void *, const void *, size_t);
    gloo::ReduceOptions options(context);

    options.setInput(const_cast<float *>(op.send), op.count);
    options.setOutput(op.recv, op.count);
    options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
    options.setRoot(0);
    gloo::reduce(options);
}

void exchange(const bench_operation &op)
{
    const uint64_t slot = 77; // any number: there is one exchange at a time
    const size_t size = op.count * sizeof(float);
    auto send = context->createUnboundBuffer(const_cast<float *>(op.send), size);
    auto recv = context->createUnboundBuffer(op.recv, size);

    recv->recv((rank + nranks - 1) % nranks, slot);
    send->send((rank + 1) % nranks, slot);
    send->waitSend();
    recv->waitRecv();
}

void run_function(const bench_operation &op)
{
    switch (op.collective) {
    case BENCH_ALLREDUCE: allreduce(op); break;
    case BENCH_ALLGATHER: {
        gloo::AllgatherOptions options(context);
        options.setInput(const_cast<float *>(op.send), op.part);
        options.setOutput(op.recv, op.count);
        gloo::allgather(options);
        break;
    }
    case BENCH_BROADCAST: {
        gloo::BroadcastOptions options(context);
        options.setRoot(0);
        options.setOutput(op.recv, op.count);
        gloo::broadcast(options);
        break;
    }
    case BENCH_ALLTOALL: {
        gloo::AlltoallOptions options(context);
        options.setInput(const_cast<float *>(op.send), op.count);
        options.setOutput(op.recv, op.count);
        gloo::alltoall(options);
        break;
    }
    case BENCH_BARRIER: {
        gloo::BarrierOptions options(context);
        gloo::barrier(options);
        break;
    }
    case BENCH_SENDRECV: exchange(op); break;
    case BENCH_REDUCE: reduce(op); break;
    default: break;
    }
}

// ---- the class API ----

std::unique_ptr<gloo::Algorithm> make_algorithm(const bench_operation &op)
{
    std::vector<float *> inputs{op.recv};
    const int count = static_cast<int>(op.count), part = static_cast<int>(op.part);
    gloo::Algorithm *made = nullptr;

    switch (op.collective) {
    case BENCH_ALLREDUCE:
        if (is_ring)
            made = new gloo::AllreduceRingChunked<float>(context, inputs, count);
        else
            made = new gloo::AllreduceHalvingDoubling<float>(context, inputs, count);
        break;
    case BENCH_ALLGATHER:
        made = new gloo::AllgatherRing<float>(context, {op.send}, op.recv, part);
        break;
    case BENCH_REDUCE_SCATTER:
        made = new gloo::ReduceScatterHalvingDoubling<float>(context, inputs, count,
                                                             std::vector<int>(nranks, part));
        break;
    case BENCH_BROADCAST:
        made = new gloo::BroadcastOneToAll<float>(context, inputs, count, 0);
        break;
    default: made = new gloo::BarrierAllToAll(context); break;
    }
    return std::unique_ptr<gloo::Algorithm>(made);
}

// An algorithm is bound to its buffer when it is made. The algorithms of one collective and size
// are kept. All ranks run the same operations, so they make and drop the same algorithms in the
// same order.
void run_class(const bench_operation &op)
{
    static std::unique_ptr<gloo::Algorithm> barrier;
    static std::map<float *, std::unique_ptr<gloo::Algorithm>> algorithms;
    static bench_operation last;

    if (op.collective == BENCH_BARRIER) {
        if (!barrier)
            barrier = make_algorithm(op);
        barrier->run();
        return;
    }
    if (op.collective != last.collective || op.count != last.count) {
        algorithms.clear();
        last = op;
    }
    auto &algorithm = algorithms[op.recv];
    if (!algorithm)
        algorithm = make_algorithm(op);
    algorithm->run();
}

void run(const bench_operation *op)
{
    try {
        if (is_polling)
            run_class(*op);
        else
            run_function(*op);
    } catch (const std::exception &error) {
        bench_die("rank %d: gloo: %s", rank, error.what());
    }
}

void join(const std::string &directory)
{
    mkdir(directory.c_str(), 0700); // the first rank makes it
    gloo::rendezvous::FileStore store(directory);
    gloo::transport::tcp::attr attributes;

    attributes.iface = "lo";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context = std::make_shared<gloo::rendezvous::Context>(rank, nranks);
    context->setTimeout(std::chrono::seconds(120));
    context->connectFullMesh(store, device);
    if (is_polling)
        for (int peer = 0; peer < nranks; peer++)
            if (peer != rank)
                context->getPair(peer)->setSync(true, nranks <= sysconf(_SC_NPROCESSORS_ONLN));
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 6)
        bench_die("usage: gloo DIRECTORY RANK NRANKS ring|bcube|polling|polling-ring VERSION");
    const std::string directory = argv[1], style = argv[4];
    bench_library library{};

    rank = library.rank = std::atoi(argv[2]);
    nranks = library.nranks = std::atoi(argv[3]);
    is_polling = style == "polling" || style == "polling-ring";
    is_ring = style == "ring" || style == "polling-ring";
    bench_pin(rank);
    library.has = has;
    library.run = run;
    library.in_place = is_polling;
    library.slots_max = is_polling ? 2 : 0;
    std::strncpy(library.version, argv[5], sizeof(library.version) - 1);
    try {
        join(directory + "/store");
    } catch (const std::exception &error) {
        bench_die("rank %d: gloo: %s", rank, error.what());
    }
    bench_serve(&library, argv[1]);
    // Gloo's destructors wait for peers that may have ended already, so they are not run.
    std::_Exit(EXIT_SUCCESS);
}
