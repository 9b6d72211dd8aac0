# dynamill: build, test, measure. `make` alone lists what there is.
#
# Everything that is installed goes into .tools, pinned; nothing outside this
# folder is changed but Go's and npm's own caches.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

GOLANGCI_LINT_VERSION := v2.15.0
golangci_lint := .tools/bin/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOTESTSUM_VERSION := v1.13.0
gotestsum := .tools/bin/gotestsum-$(GOTESTSUM_VERSION)
# go_test is go test, but a skipped test fails, and so does a run without tests.
go_test = $(gotestsum) --format standard-quiet --post-run-command scripts/no-skips --

# These are files that npm writes when it has installed everything.
lambda_stream := .tools/lambda-stream/node_modules/.package-lock.json
clients := .tools/clients/node_modules/.package-lock.json

# PACKAGES narrows test, bench, fuzz and soak: make test PACKAGES=./internal/rules/...
PACKAGES ?= ./...
# TESTFLAGS are added to go test: make test TESTFLAGS='-run TestMirror -v'
TESTFLAGS ?=
# BENCH chooses benchmarks, BENCHTIME how long or how often each runs.
BENCH ?= .
BENCHTIME ?= 1s
# READINGFLAGS are given to the benchmark of reading: make bench-reading READINGFLAGS=-help
READINGFLAGS ?=
# PEERSFLAGS are given to the benchmark beside hand-written handlers: make bench-peers PEERSFLAGS=-help
PEERSFLAGS ?=
# SEEDS is how many random histories are lived through, SEED the first of them.
SEEDS ?= 500
SEED ?= 0
# FUZZTIME is how long each fuzz target runs; SOAK multiplies long randomized tests.
FUZZTIME ?= 20s
SOAK ?= 20
SOAK_SEEDS ?= 20000
SOAK_FUZZTIME ?= 10m
EXAMPLE ?=
# RULES is the rule file that make lambda packs. It reaches the shell as a variable, so
# that it may hold quotes and spaces.
RULES ?=
export RULES

# Every target builds with the flags of a release: without paths of this machine, and without C (but for the race detector). So targets and
# clones share Go's build cache: most of a first build compiles the AWS SDK.
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath
export CGO_ENABLED := 0

beside_endpoints := DYNAMILL_REQUIRE_ENDPOINT=1 DYNAMILL_CLIENTS=$(CURDIR)/$(dir $(clients)) scripts/with-endpoints
# Tests wait for servers more than they compute, so more of them run at once than there are cores.
gotest_flags := -vet=off -ldflags=-w -p 4 -parallel 6 -timeout 25m
# Where several programs compute at once, each has half of the cores: their threads would only wake and displace each other. A container may
# have fewer cores than its machine.
half_the_cores := GOMAXPROCS=$(shell awk -v n="$$(getconf _NPROCESSORS_ONLN)" \
  '$$2 && $$1 + 0 && $$1 / $$2 < n { n = $$1 / $$2 } END { n = int((n + 1) / 2); print n < 1 ? 1 : n }' \
  $(wildcard /sys/fs/cgroup/cpu.max) /dev/null)
# These take longest, so they begin first: none of them is left over when all others have ended.
longest := ./cmd/dynamill ./internal/streamreader ./internal/replay/verify ./internal/sim/lambdatest . ./internal/projections ./internal/proof/histories
test_packages = $(if $(filter ./...,$(PACKAGES)),$(longest)) $(PACKAGES)
# The collector runs less often in compilers and in simulated worlds: they are small, and have memory to spare up to this limit.
test test-long: export GOGC := 1600
test test-long: export GOMEMLIMIT := 2GiB

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The race detector finds nothing where one goroutine works. These packages and their tests start none; some
# take long with the detector: the oracle, the templates of infra, and the conformance of the simulator, one call after the other.
one_goroutine := $(addprefix github.com/dynamill/dynamill/, change rules scripts scripts/lambdazip $(addprefix internal/, \
  architecture attributes awserror decimal dynamojson emf extsort following health infra lanes printable \
  projections/internal/audit projections/internal/effects projections/internal/kinds/aggregates \
  projections/internal/kinds/computed projections/internal/kinds/copies projections/internal/kinds/deletions \
  projections/internal/kinds/hot projections/internal/kinds/mirrors projections/internal/kinds/ordered \
  projections/internal/kinds/trees projections/internal/leftovers projections/internal/pack projections/internal/plan \
  projections/internal/seeding projections/internal/sightings projections/internal/stamp projections/internal/state \
  rules/expr rules/expr/internal/operand rules/expr/internal/scanner rules/internal/templates rules/rulediff sighting tally \
  proof/mutants proof/mutants/switches proof/oracle proof/population replay/internal/lines \
  sim/conformance sim/dynamosim/expression sim/dynamosim/values sim/pattern stream/shardlist stream/streamapi) \
  $(addprefix cmd/dynamill/internal/, commandline ending explain output parked preview report settings status verifying))
# These run the function's binary, which is built without the detector: what its handler does on several goroutines, the
# tests of the module's root and of internal/handlers do in their own process.
without_detector := %/internal/sim/lambdatest %/cmd/dynamill-lambda
# These start the command hundreds of times, and a process takes long to start with the detector. The test whose processes live long is
# run with it by itself.
command := %/cmd/dynamill
long_lived := ^TestKilledAndFrozen
# This serves the conformance suite over HTTP, for benchmarks; the engine takes no part.
for_benchmarks := %/internal/sim/simserver
# These play examples; what the engine does on several goroutines then, it does in its own tests, too.
examples := %/examples %/cmd/dynamill/internal/demo
without_race := $(one_goroutine) $(without_detector) $(command) $(for_benchmarks) $(examples)

.PHONY: build
build: ## build bin/dynamill, which needs no library of the system
	go build -o bin/dynamill ./cmd/dynamill

.PHONY: lambda
lambda: ## build bin/lambda/dynamill-{arm64,amd64}.zip; RULES=dynamill.yaml packs that rule file, too
	go run ./scripts/lambdazip -o bin/lambda -rules "$$RULES"

.PHONY: test
test: $(gotestsum) $(clients) ## every test beside DynamoDB Local, and the proof: 6 to 10 minutes on two idle cores; a skipped test fails
	$(half_the_cores) $(beside_endpoints) $(go_test) $(gotest_flags) $(TESTFLAGS) $(test_packages)
	$(if $(filter ./...,$(PACKAGES)),$(half_the_cores) $(MAKE) -j2 prove)

.PHONY: test-peers
test-peers: ## the benchmark beside handlers written by hand, in small and without aws-lambda-stream: part of test-long
	$(beside_endpoints) go test -C benchmarks/peers $(TESTFLAGS) ./...

.PHONY: test-long
test-long: $(gotestsum) $(clients) ## the tests once more with the race detector, in smaller worlds, and other histories: up to half an hour
	CGO_ENABLED=1 $(beside_endpoints) $(go_test) -race $(gotest_flags) $(TESTFLAGS) \
	  $(if $(filter ./...,$(PACKAGES)),$(filter-out $(without_race),$(shell go list $(test_packages))),$(PACKAGES))
	$(if $(filter ./...,$(PACKAGES)),CGO_ENABLED=1 $(beside_endpoints) $(go_test) -race $(gotest_flags) $(TESTFLAGS) -run '$(long_lived)' ./cmd/dynamill)
	$(if $(filter ./...,$(PACKAGES)),$(MAKE) test-peers)
	$(if $(filter ./...,$(PACKAGES)),$(MAKE) histories SEED=$$(($(SEED) + $(SEEDS))) SEEDS=$$((3 * $(SEEDS))))

.PHONY: prove
prove: histories guards ## try to break the promises: SEEDS random histories (500) from SEED on, then once more without each guard

.PHONY: histories
histories:
	set -o pipefail; GOGC=800 DYNAMILL_SEEDS=$(SEEDS) DYNAMILL_SEED=$(SEED) go test -count=1 -vet=off -timeout 0 -v \
	  -run '^TestPromisesHoldInSeededHistories$$' ./internal/proof/histories | grep -av --line-buffered '^=== '

.PHONY: guards
guards:
	set -o pipefail; copies=$$(mktemp -d) && trap 'rm -rf "$$copies"' EXIT && overlay=$$(go run ./internal/proof/mutants/overlay "$$copies") && \
	  GOGC=800 go test -overlay "$$overlay" -tags teeth -count=1 -vet=off -timeout 0 -v \
	  -run '^TestEveryGuardIsMissed$$' ./internal/proof/histories | grep -av --line-buffered '^=== '

.PHONY: lint
lint: $(golangci_lint) ## gofmt, go vet, the linters of .golangci.yml, and plain English in comments
	$(golangci_lint) run ./...
	scripts/plain-english

$(golangci_lint):
	@echo "building golangci-lint $(GOLANGCI_LINT_VERSION) into .tools (one to three minutes, once)"
	@mkdir -p .tools/bin
	@GOBIN=$(CURDIR)/.tools/bin/aside go install -trimpath github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv .tools/bin/aside/golangci-lint $@ && rmdir .tools/bin/aside

$(gotestsum):
	@mkdir -p .tools/bin
	@GOBIN=$(CURDIR)/.tools/bin/aside go install -trimpath gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	@mv .tools/bin/aside/gotestsum $@ && rmdir .tools/bin/aside

.PHONY: bench
bench: ## benchmarks, and the write units that a real endpoint reports
	$(beside_endpoints) \
	  go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 30m $(PACKAGES)
	$(beside_endpoints) \
	  go test -count=1 -vet=off -run 'Price|ACopyCosts|TestExactCapacity' -v ./internal/projections

.PHONY: bench-reading
bench-reading: ## records read a second, beside Redpanda Connect and a bare loop; fetches and builds the former first: minutes, once
	go build -C benchmarks/reading -o $(CURDIR)/bin/bench-reading .
	scripts/with-endpoints bin/bench-reading $(READINGFLAGS)

.PHONY: bench-peers
bench-peers: $(lambda_stream) ## time, requests, units, CPU and memory beside handlers written by hand: 20 minutes; PEERSFLAGS=-help lists the flags
	go build -C benchmarks/peers -o $(CURDIR)/bin/bench-peers .
	DYNAMILL_LAMBDA_STREAM=$(CURDIR)/$(dir $(lambda_stream)) scripts/with-endpoints bin/bench-peers $(PEERSFLAGS)

$(lambda_stream): benchmarks/peers/lambdastream/package-lock.json
	@echo "installing aws-lambda-stream into .tools (a minute, once)"
	@mkdir -p .tools/lambda-stream && cp benchmarks/peers/lambdastream/package*.json .tools/lambda-stream
	@cd .tools/lambda-stream && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(clients): cmd/dynamill/testdata/clients/package-lock.json
	@echo "installing client libraries for Node.js into .tools (a minute, once)"
	@mkdir -p .tools/clients && cp cmd/dynamill/testdata/clients/package*.json .tools/clients
	@cd .tools/clients && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (20s)
	scripts/fuzz $(FUZZTIME) $(PACKAGES)

.PHONY: soak
soak: $(gotestsum) ## an hour rather than minutes: SOAK_SEEDS histories (20000), SOAK times other randomized tests, each fuzz target for SOAK_FUZZTIME
	$(MAKE) prove SEEDS=$(SOAK_SEEDS)
	DYNAMILL_SOAK=$(SOAK) $(beside_endpoints) \
	  $(go_test) -count=1 -vet=off -timeout 0 $(TESTFLAGS) $(PACKAGES)
	scripts/fuzz $(SOAK_FUZZTIME) $(PACKAGES)

.PHONY: demo
demo: ## run an example end to end in memory: make demo EXAMPLE=groups
	go run ./cmd/dynamill demo $(EXAMPLE)

.PHONY: endpoints
endpoints: ## keep the emulators running and print their settings, until interrupted
	scripts/with-endpoints

.PHONY: clean
clean: ## remove what was built and installed here
	rm -rf bin .tools
