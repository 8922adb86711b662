# The short way in: `make` lists the targets. The work itself is in CMakePresets.json and .ci/.
#
#   make run ARGS="--data_dir ../shared/mnist"   flags for `disttf launch`
#   make test TESTS='Frame'                      only the tests whose names match
#   make build JOBS=8                            how many compilers at once
#   make test TEST_JOBS=1                        how many tests at once
#   make test PRESET=ci                          another build of CMakePresets.json

SHELL := /bin/bash
PRESET ?= release
JOBS ?= $(shell nproc)
# Most of the time that a test of whole tasks takes, they wait for each other.
TEST_JOBS ?= $(shell expr 4 \* $(JOBS))
TESTS ?= .
ARGS ?=
FUZZ_SECONDS ?= 60
FUZZ_HOURS ?= 8
CHAOS_RUNS ?= 200
CHAOS_NETWORK_RUNS ?= 40
CHAOS_TLS_RUNS ?= 40
CHAOS_SEED ?= 1
LAST_MOMENT_RUNS ?= 300
LAST_MOMENT_SEED ?= 1
FAULTS ?= 1000000
SEED ?= 1
BUILD := build/$(PRESET)
CONFIGURE := cmake --log-level=WARNING >/dev/null --preset
COMPILE := cmake --build --parallel $(JOBS) --preset
# Tests get no terminal and no input: they must not behave differently where there is none.
CTEST := ctest --parallel $(TEST_JOBS) --no-label-summary --tests-regex '$(TESTS)' </dev/null

.DEFAULT_GOAL := help
.PHONY: help setup build run test bench package chaos format lint clean
.PHONY: test-configure compile-commands reproducible aarch64 engines flags-document last-moment simulate transcripts mutants simulate-build test-build asan asan-build asan-units asan-processes tsan tsan-build fuzz fuzz-build fuzz-night fuzz-corpus fuzz-coverage fuzz-coverage-build

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install every package that building, testing and developing need (Debian)
	@.ci/install build test dev

# Only the file: no test or benchmark is configured, so their packages are not needed. Where
# they already are, the folder is left as it is.
build: ## build the one static file: build/release/disttf
	@.ci/install build
	@[ -f $(BUILD)/build.ninja ] || \
	  $(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=OFF -DDISTTF_BUILD_BENCH=OFF
	@$(COMPILE) $(PRESET) --target disttf

run: build ## build, then train on 1 ps and 2 workers (flags: ARGS="--model softmax")
	@$(BUILD)/disttf launch --ps 1 --workers 2 $(ARGS)

# A program that was not built is one test named X_NOT_BUILT, which would fail.
test: test-configure ## build and run every test (TESTS=regex: only those whose names match, and their programs)
	@$(COMPILE) $(PRESET) --target $$(.ci/programs $(BUILD) '$(TESTS)')
	@$(CTEST) --preset $(PRESET) --exclude-regex '_NOT_BUILT$$' --output-junit tests.xml

test-build: test-configure
	@$(COMPILE) $(PRESET)

test-configure:
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON -DDISTTF_BUILD_BENCH=ON

# Of the preset dev, which compiles each source alone: the release compiles units, which no editor opens.
compile-commands: ## compile_commands.json for editors and clangd, without building anything
	@.ci/install build test
	@$(CONFIGURE) dev -DDISTTF_UNITY=OFF -DDISTTF_BUILD_TESTS=ON -DDISTTF_BUILD_BENCH=ON
	@ln -sfn build/dev/compile_commands.json compile_commands.json
	@echo "compile_commands.json leads to build/dev/compile_commands.json"

bench: ## build and run the benchmarks
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_BENCH=ON
	@$(COMPILE) $(PRESET)
	@$(BUILD)/bench/disttf_bench $(ARGS)

package: build ## the .deb, the wheel, the image, the archive, the chart, an SBOM and their checksums: build/packages
	@$(COMPILE) $(PRESET) --target disttf_manual
	@python3 -B deploy/packages/make_packages.py $(BUILD) build/packages

reproducible: ## build the commit twice, in two folders and without ccache: the same bytes
	@.ci/install build
	@.ci/reproducible

chaos: ## CHAOS_RUNS=200 runs, CHAOS_NETWORK_RUNS=40 and CHAOS_TLS_RUNS=40, whose tasks are killed, frozen and cut off, each to the same bits
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON
	@$(COMPILE) $(PRESET) --target process_chaos_test
	@cd $(BUILD)/tests/process && DISTTF_CHAOS_RUNS=$(CHAOS_RUNS) \
	  DISTTF_CHAOS_NETWORK_RUNS=$(CHAOS_NETWORK_RUNS) DISTTF_CHAOS_TLS_RUNS=$(CHAOS_TLS_RUNS) \
	  DISTTF_CHAOS_SEED=$(CHAOS_SEED) \
	  ./process_chaos_test </dev/null

last-moment: ## LAST_MOMENT_RUNS=300 runs whose tasks are killed when they are about to end
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON
	@$(COMPILE) $(PRESET) --target process_last_moment_test
	@cd $(BUILD)/tests/process && DISTTF_LAST_MOMENT_RUNS=$(LAST_MOMENT_RUNS) \
	  DISTTF_LAST_MOMENT_SEED=$(LAST_MOMENT_SEED) ./process_last_moment_test </dev/null

# Not in .ci/run: the first time all of it is compiled. ENGINE_TESTS="tfjob jobset": only these.
engines: build ## what `disttf render` writes, on a real Kubernetes of one node, built from its sources
	@.ci/install kubernetes
	@.ci/engines_build
	@.ci/tools helm
	@python3 -B tests/engines/kubernetes_test.py $(BUILD)/disttf build/engines ../shared/mnist $(ENGINE_TESTS) </dev/null

flags-document: ## write the tables of docs/flags.md, and the flags of the chart, anew from the flags themselves
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON
	@$(COMPILE) $(PRESET) --target main_test
	@DISTTF_REWRITE=1 $(BUILD)/tests/main/main_test --gtest_brief=1 \
	  --gtest_filter=FlagDocument.IsWhatTheFlagsSay:Chart.HasTheFlags

simulate: simulate-build ## FAULTS=1000000 faults in simulated clusters, from SEED=1 on, in virtual time
	@$(BUILD)/tests/sim/disttf_simulate --faults $(FAULTS) --seed $(SEED) --jobs $(JOBS)

transcripts: simulate-build ## write into tests/transcripts what simulated tasks say now
	@for file in tests/transcripts/*.txt; do \
	  $(BUILD)/tests/sim/disttf_simulate --transcript $$file >$$file.new; mv $$file.new $$file; done

# A build of its own, in which each source is an object that can be replaced.
mutants: ## break the cores one way after the other: something must show each
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -B build/mutants -DDISTTF_UNITY=OFF -DDISTTF_BUILD_TESTS=ON -DDISTTF_PROCESS_TESTS=OFF
	@cmake --build build/mutants --parallel $(JOBS) --target disttf_simulate roles_test
	@tests/sim/mutants/find.sh build/mutants

simulate-build:
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON
	@$(COMPILE) $(PRESET) --target disttf_simulate

format: ## rewrite the C++ sources as .clang-format says
	@.ci/install dev
	@.ci/format --fix

lint: ## clang-tidy on every source of the product
	@.ci/install build dev
	@.ci/lint $(JOBS)

aarch64: ## the file for aarch64, cross-compiled: emulated, it must train to the bits of x86-64
	@.ci/install build test aarch64
	@.ci/aarch64
	@$(CONFIGURE) aarch64
	@$(COMPILE) aarch64
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON
	@$(COMPILE) $(PRESET) --target disttf math_gradient_files
	@tests/build/aarch64_test.sh build/aarch64 $(BUILD)

asan: asan-build ## the tests, and some of those of whole tasks, under AddressSanitizer and UBSan
	@$(CTEST) --preset asan

# The two parts of it, which .ci/run runs one after the other.
asan-units: asan-build
	@$(CTEST) --preset asan --label-exclude process

asan-processes: asan-build
	@$(CTEST) --preset asan --label-regex process

asan-build:
	@.ci/install build test
	@$(CONFIGURE) asan
	@$(COMPILE) asan

# These go through every place of a save, each in one thread; asan runs them.
WITHOUT_THREADS = GTEST_FILTER='-*Checkpoint*DamageTest*:*CheckpointPowerCutTest*'

tsan: tsan-build ## those where threads meet, of net/, roles/ and whole tasks, under ThreadSanitizer
	@$(CTEST) --test-dir build/tsan/tests/net --output-on-failure --no-tests=error
	@$(WITHOUT_THREADS) $(CTEST) --test-dir build/tsan/tests/roles --output-on-failure --no-tests=error
	@$(CTEST) --test-dir build/tsan/tests/process --output-on-failure --no-tests=error

tsan-build:
	@.ci/install build test
	@$(CONFIGURE) tsan
	@$(COMPILE) tsan --target tests/net/all tests/roles/all tests/process/all

fuzz: fuzz-build ## search each decoder for FUZZ_SECONDS=60 with libFuzzer
	@$(CTEST) --test-dir build/fuzz --label-regex fuzz --output-on-failure --no-tests=error

fuzz-build:
	@.ci/install build test dev
	@$(CONFIGURE) fuzz -DDISTTF_FUZZ_SECONDS=$(FUZZ_SECONDS)
	@$(COMPILE) fuzz

fuzz-night: fuzz-build ## all of them for FUZZ_HOURS=8 together, JOBS at once: inputs, and what was found
	@tests/fuzz/night.sh build/fuzz $(FUZZ_HOURS) $(JOBS)

fuzz-corpus: fuzz-build fuzz-coverage-build ## take over into the corpus what both found that reaches a line more
	@tests/fuzz/grow_corpus.sh build/fuzz build/fuzz_coverage $(JOBS)

fuzz-coverage: fuzz-coverage-build ## which lines of the decoders and sessions the corpus reaches
	@tests/fuzz/coverage.sh build/fuzz_coverage

fuzz-coverage-build:
	@.ci/install build test dev
	@$(CONFIGURE) fuzz_coverage
	@$(COMPILE) fuzz_coverage

clean: ## remove build/
	rm -rf build
