# SPDX-License-Identifier: Apache-2.0
# The commands of a fresh clone, with all their set-up: `make perf`, `make test`, `make install`. The
# build proper is CMake's; see CMakePresets.json.
JOBS := $(shell nproc 2>/dev/null || echo 2)
# Many tests wait, for a deadline or for one slow rank: twice as many as there are CPUs keep these busy.
TESTS := $(shell expr $(JOBS) \* 2)
PERF := --ranks 4 -b 8 -e 64M -f 2 -c 1
PREFIX ?= /usr/local

.PHONY: perf install test nightly asan tsan test-pytorch test-pytorch-older docs reference setup clean

# All-reduce from 8 bytes to 64 MiB between four processes.
perf: setup
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target tutti-perf
	build/release/perf/all_reduce_perf $(PERF)

# Library, header and programs below PREFIX, or below DESTDIR/PREFIX for another system. If there is
# an nvcc, the library has kernels for all GPUs from A100 to B200.
install: setup
	cmake --preset release
	cmake --build build/release -j $(JOBS) --target tutti-installable
	DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(PREFIX)"

# Everything, as a developer builds it: debug, with assertions.
test: build-dev
	ctest --test-dir build/dev --output-on-failure -j$(TESTS) -LE nightly

# All rows of all tests: every algorithm proved for up to 256 ranks and some for 4096, whole matrices,
# and the sanitizers over all that they can run. Takes hours.
nightly: export TUTTI_TEST_WHOLE := 1
nightly: build-nightly build-asan build-tsan
	ctest --test-dir build/nightly --output-on-failure -j$(TESTS)
	ctest --test-dir build/asan --output-on-failure -j$(TESTS)
	ctest --test-dir build/tsan --output-on-failure -j$(TESTS) -LE "network|schedule|simulator"

# Names of tests, each a regular expression; ctest takes them as one with few parentheses.
any_of = $(subst $() $(),|,$(strip $(1)))

# Rows whose code other rows run under a sanitizer, too: all transports together, and TCP that encrypts.
SHARED_ROWS := test_groups\.shm test_groups\.cma test_groups\.tcp$$ \
    test_mailbox.*\.shm test_mailbox.*\.cma test_mailbox.*\.tcp$$ \
    test_collectives\..*\.cma.shm$$ test_collectives\..*mixed\.shm$$ test_collectives\..*PER_PEER=1$$ \
    test_collectives\.[^c].*ipv6 test_collectives\..*threads\.tcp\.ipv6 \
    test_collectives\..*processes\.tcp\.ipv6

# Without what only computes for long: the same code runs in shorter tests.
ASAN_WITHOUT := $(SHARED_ROWS) test_mutants test_4096_ranks test_16384_ranks test_claims test_choose \
    test_algorithms\. test_two_threads check_samples \
    test_rounds test_torus_ports test_recorded_plans test_plans$$ test_prices$$ test_costs$$ \
    test_cost_functions$$ test_import_algorithms test_kernel_arithmetic_driver \
    test_collectives\.sizes\..*=[^o] test_collectives\.sizes\..*all test_collectives\..*processes\.tcp \
    test_collectives\..*mixed\.all test_collectives\..*threads\.shm$$ test_collectives\..*threads\.tcp \
    test_gpu_collectives\.sizes test_gpu_collectives\.types \
    test_gpu_collectives\.operations\.processes test_gpu_algorithms\..*\.types\.processes \
    test_gpu_algorithms\..*\.operations test_gpu_hosts\.operations \
    test_gpu_links test_gpu_forms test_gpu_rails \
    test_gpu_copies\.sizes test_gpu_copies\.streams test_gpu_copies\.graphs \
    test_gpu_copies\.types test_gpu_queues\.streams test_gpu_queues\.vectors
# A process that frees much and ends soon is faster with less of it kept from use.
asan: export ASAN_OPTIONS := quarantine_size_mb=16:malloc_context_size=8
asan: build-asan
	ctest --test-dir build/asan --output-on-failure -j$(TESTS) -LE nightly \
	    -E "$(call any_of,$(ASAN_WITHOUT))"

# Where threads meet. Checker, simulator and arithmetic have one thread; processes share nothing that
# is watched; addresses and programs have no threads of their own; and the order in which kernels load and
# store is watched by the simulated driver, in every build.
TSAN_WITHOUT := $(SHARED_ROWS) test_two_jobs bench_gpu perf_gpu gpu_check \
    test_collectives\..*processes test_gpu_collectives\..*processes test_gpu_algorithms\..*processes \
    test_gpu_copies\..*processes test_collectives\..*mixed\.cma test_collectives\..*mixed\.tcp\.ipv4 \
    test_collectives\..*mixed\.tcp\.TUTTI_S \
    test_kernel test_gpu_lines test_gpu_collectives\.roots test_gpu_collectives\.vectors \
    test_gpu_collectives\.acts\.threads\.8 test_gpu_algorithms\.rings \
    test_gpu_algorithms\.cube test_gpu_links test_gpu_tuning test_gpu_forms test_gpu_rails \
    test_gpu_hosts\. test_gpu_queues\.streams test_gpu_queues\.vectors \
    test_gpu_queues\..*_perf test_gpu_queues\.groups \
    test_gpu_copies\.roots test_gpu_copies\.vectors \
    test_costs$$ test_cost_functions$$ test_cpu_reduce$$ test_fuse_random$$
# By default a process sleeps for a second at its end, which in all takes minutes.
tsan: export TSAN_OPTIONS := atexit_sleep_ms=20
tsan: build-tsan
	ctest --test-dir build/tsan --output-on-failure -j$(TESTS) \
	    -LE "slow|network|schedule|simulator|tools|topology|arithmetic|nightly" \
	    -E "$(call any_of,$(TSAN_WITHOUT))"

# The Python package with the newest PyTorch, which is installed below build/ the first time.
test-pytorch:
	@sh scripts/setup python3-dev python3-venv
	scripts/test-pytorch

# The same with two older releases of PyTorch.
test-pytorch-older:
	@sh scripts/setup python3-dev python3-venv
	scripts/test-pytorch torch==2.14.1
	scripts/test-pytorch torch==2.13.0

# Print docs/environment.md anew.
docs: build-dev
	cmake --build build/dev --target docs

# HTML and manual pages of the C API, in build/reference. Needs doxygen.
reference:
	@docs/reference/build build/reference

setup:
	@sh scripts/setup

.PHONY: build-release build-ci build-dev build-nightly build-asan build-tsan
build-release build-ci build-dev build-nightly build-asan build-tsan: build-%: setup
	cmake --preset $*
	cmake --build build/$* -j $(JOBS)

clean:
	rm -rf build
