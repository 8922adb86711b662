# Shortcuts for common tasks: `make` lists the targets. CMakePresets.json and .ci/ implement them.
#
#   make run ARGS="--data_dir ../shared/mnist"   pass flags to `disttf launch`
#   make test TESTS='Frame'                      run only the tests whose names match
#   make build JOBS=8                            run 8 compilers in parallel
#   make test TEST_JOBS=1                        run 1 test at a time
#   make test PRESET=ci                          use another preset of CMakePresets.json

SHELL := /bin/bash
PRESET ?= release
JOBS ?= $(shell nproc)
# Tests that start whole tasks spend most of their time waiting, so more tests than processors run.
TEST_JOBS ?= $(shell expr 4 \* $(JOBS))
TESTS ?= .
ARGS ?=
FUZZ_SECONDS ?= 60
FUZZ_HOURS ?= 8
CHAOS_RUNS ?= 200
CHAOS_NETWORK_RUNS ?= 40
CHAOS_TLS_RUNS ?= 40
CHAOS_PROGRAM_RUNS ?= 40
CHAOS_SEED ?= 1
LAST_MOMENT_RUNS ?= 300
LAST_MOMENT_SEED ?= 1
FAULTS ?= 1000000
SEED ?= 1
BUILD := build/$(PRESET)
CONFIGURE := cmake --log-level=WARNING >/dev/null --preset
COMPILE := cmake --build --parallel $(JOBS) --preset
# Tests read from /dev/null, so that they behave the same with and without a terminal.
CTEST := ctest --parallel $(TEST_JOBS) --no-label-summary --tests-regex '$(TESTS)' </dev/null

.DEFAULT_GOAL := help
.PHONY: help setup build run test bench package chaos format lint clean
.PHONY: test-configure compile-commands reproducible aarch64 engines flags-document last-moment simulate transcripts mutants simulate-build test-build asan asan-build asan-units asan-processes tsan tsan-build fuzz fuzz-build fuzz-night fuzz-corpus fuzz-coverage fuzz-coverage-build

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install every package that building, testing and developing need (Debian)
	@.ci/install build test dev

# A new build folder is configured without tests and benchmarks, so their packages are not needed.
# An existing build folder keeps its configuration.
build: ## build the static executable: build/release/disttf
	@.ci/install build
	@[ -f $(BUILD)/build.ninja ] || \
	  $(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=OFF -DDISTTF_BUILD_BENCH=OFF
	@$(COMPILE) $(PRESET) --target disttf

run: build ## build, then train with 1 parameter server and 2 workers (flags: ARGS="--model softmax")
	@$(BUILD)/disttf launch --ps 1 --workers 2 $(ARGS)

# ctest lists a program X that was not built as the test X_NOT_BUILT, which would fail.
test: test-configure ## build and run every test (TESTS=regex: only those whose names match, and their programs)
	@$(COMPILE) $(PRESET) --target $$(.ci/programs $(BUILD) '$(TESTS)')
	@$(CTEST) --preset $(PRESET) --exclude-regex '_NOT_BUILT$$' --output-junit tests.xml

test-build: test-configure
	@$(COMPILE) $(PRESET)

test-configure:
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON -DDISTTF_BUILD_BENCH=ON

# Uses the preset dev, which compiles each source alone. The release build compiles unity sources,
# which are of no use to an editor.
compile-commands: ## write compile_commands.json for editors and clangd, without building
	@.ci/install build test
	@$(CONFIGURE) dev -DDISTTF_UNITY=OFF -DDISTTF_BUILD_TESTS=ON -DDISTTF_BUILD_BENCH=ON
	@ln -sfn build/dev/compile_commands.json compile_commands.json
	@echo "compile_commands.json links to build/dev/compile_commands.json"

bench: ## build and run the benchmarks
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_BENCH=ON
	@$(COMPILE) $(PRESET)
	@$(BUILD)/bench/disttf_bench $(ARGS)

package: build ## build the .deb, wheel, image, archive, chart, SBOM and checksums: build/packages
	@$(COMPILE) $(PRESET) --target disttf_manual
	@python3 -B deploy/packages/make_packages.py $(BUILD) build/packages

reproducible: ## build the commit twice, in two folders and without ccache, and compare the bytes
	@.ci/install build
	@.ci/reproducible

chaos: ## kill, freeze and disconnect tasks in CHAOS_RUNS=200, CHAOS_NETWORK_RUNS=40, CHAOS_TLS_RUNS=40 and CHAOS_PROGRAM_RUNS=40 runs; results must be bit-identical
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON
	@$(COMPILE) $(PRESET) --target process_chaos_test
	@cd $(BUILD)/tests/process && DISTTF_CHAOS_RUNS=$(CHAOS_RUNS) \
	  DISTTF_CHAOS_NETWORK_RUNS=$(CHAOS_NETWORK_RUNS) DISTTF_CHAOS_TLS_RUNS=$(CHAOS_TLS_RUNS) \
	  DISTTF_CHAOS_PROGRAM_RUNS=$(CHAOS_PROGRAM_RUNS) \
	  DISTTF_CHAOS_SEED=$(CHAOS_SEED) \
	  ./process_chaos_test </dev/null

last-moment: ## kill tasks just before they exit, in LAST_MOMENT_RUNS=300 runs
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON
	@$(COMPILE) $(PRESET) --target process_last_moment_test
	@cd $(BUILD)/tests/process && DISTTF_LAST_MOMENT_RUNS=$(LAST_MOMENT_RUNS) \
	  DISTTF_LAST_MOMENT_SEED=$(LAST_MOMENT_SEED) ./process_last_moment_test </dev/null

# Not part of .ci/run: the first run compiles Kubernetes. ENGINE_TESTS="tfjob jobset" runs only these tests.
engines: build ## test the output of `disttf render` on a one-node Kubernetes built from source
	@.ci/install kubernetes
	@.ci/engines_build
	@.ci/tools helm
	@python3 -B tests/engines/kubernetes_test.py $(BUILD)/disttf build/engines ../shared/mnist $(ENGINE_TESTS) </dev/null

flags-document: ## regenerate the tables of docs/flags.md and the flags of the chart
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON
	@$(COMPILE) $(PRESET) --target main_test
	@DISTTF_REWRITE=1 $(BUILD)/tests/main/main_test --gtest_brief=1 \
	  --gtest_filter=FlagDocument.IsWhatTheFlagsSay:Chart.HasTheFlags

simulate: simulate-build ## inject FAULTS=1000000 faults into simulated clusters, from SEED=1 on, in virtual time
	@$(BUILD)/tests/sim/disttf_simulate --faults $(FAULTS) --seed $(SEED) --jobs $(JOBS)

transcripts: simulate-build ## regenerate tests/transcripts from the simulated tasks
	@for file in tests/transcripts/*.txt; do \
	  $(BUILD)/tests/sim/disttf_simulate --transcript $$file >$$file.new; mv $$file.new $$file; done

# A separate build without unity sources, so that each mutant replaces one object file.
mutants: ## mutation tests: break cores and shells one way at a time; the tests must detect each mutant
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -B build/mutants -DDISTTF_UNITY=OFF -DDISTTF_BUILD_TESTS=ON -DDISTTF_PROCESS_TESTS=OFF
	@cmake --build build/mutants --parallel $(JOBS) --target disttf_simulate roles_test
	@tests/sim/mutants/find.sh build/mutants

simulate-build:
	@.ci/install build test
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON
	@$(COMPILE) $(PRESET) --target disttf_simulate

format: ## format the C++ sources with clang-format
	@.ci/install dev
	@.ci/format --fix

lint: ## run clang-tidy on every source of the product
	@.ci/install build dev
	@.ci/lint $(JOBS)

aarch64: ## cross-compile for aarch64; the emulated result must be bit-identical to that of x86-64
	@.ci/install build test aarch64
	@.ci/aarch64
	@$(CONFIGURE) aarch64
	@$(COMPILE) aarch64
	@$(CONFIGURE) $(PRESET) -DDISTTF_BUILD_TESTS=ON
	@$(COMPILE) $(PRESET) --target disttf math_gradient_files
	@tests/build/aarch64_test.sh build/aarch64 $(BUILD)

asan: asan-build ## run the unit tests and some process tests under AddressSanitizer and UBSan
	@$(CTEST) --preset asan

# The two parts of asan, which .ci/run runs one after the other.
asan-units: asan-build
	@$(CTEST) --preset asan --label-exclude process

asan-processes: asan-build
	@$(CTEST) --preset asan --label-regex process

asan-build:
	@.ci/install build test
	@$(CONFIGURE) asan
	@$(COMPILE) asan

# These tests inject damage at every point of a save, each in a single thread, so TSan finds nothing
# in them. asan runs them.
WITHOUT_THREADS = GTEST_FILTER='-*Checkpoint*DamageTest*:*CheckpointPowerCutTest*'

tsan: tsan-build ## run the multi-threaded tests of net/, run/, storage/, model/, roles/ and whole tasks under ThreadSanitizer
	@$(CTEST) --test-dir build/tsan/tests/net --output-on-failure --no-tests=error
	@for folder in run storage model roles; do \
	  $(WITHOUT_THREADS) $(CTEST) --test-dir build/tsan/tests/$$folder --output-on-failure --no-tests=error || exit; done
	@$(CTEST) --test-dir build/tsan/tests/process --output-on-failure --no-tests=error

tsan-build:
	@.ci/install build test
	@$(CONFIGURE) tsan
	@$(COMPILE) tsan --target tests/net/all tests/run/all tests/storage/all tests/model/all tests/roles/all tests/process/all

fuzz: fuzz-build ## fuzz each decoder for FUZZ_SECONDS=60 with libFuzzer
	@$(CTEST) --test-dir build/fuzz --label-regex fuzz --output-on-failure --no-tests=error

fuzz-build:
	@.ci/install build test dev
	@$(CONFIGURE) fuzz -DDISTTF_FUZZ_SECONDS=$(FUZZ_SECONDS)
	@$(COMPILE) fuzz

fuzz-night: fuzz-build ## fuzz all targets for FUZZ_HOURS=8 in total, JOBS in parallel; keeps inputs and findings
	@tests/fuzz/night.sh build/fuzz $(FUZZ_HOURS) $(JOBS)

fuzz-corpus: fuzz-build fuzz-coverage-build ## add to the corpus the inputs from fuzz and fuzz-night that cover new lines
	@tests/fuzz/grow_corpus.sh build/fuzz build/fuzz_coverage $(JOBS)

fuzz-coverage: fuzz-coverage-build ## report which lines of the decoders and sessions the corpus covers
	@tests/fuzz/coverage.sh build/fuzz_coverage

fuzz-coverage-build:
	@.ci/install build test dev
	@$(CONFIGURE) fuzz_coverage
	@$(COMPILE) fuzz_coverage

clean: ## remove build/
	rm -rf build
