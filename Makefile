# Deckhand's verbs. CI runs these and nothing else. A bare Debian machine with
# Go, make, git, npm, shellcheck and root is enough: tools and the test cluster are built from
# source, each once. Without npm tests of MCP servers in Node.js are skipped, and two
# examples of make e2e fail.

# Every recipe runs under hack/timed, which says where the time goes.
SHELL = hack/timed
.SHELLFLAGS = $@
.ONESHELL:
.NOTPARALLEL:
.DEFAULT_GOAL := help

# Where the test cluster keeps what it has, and where verbs look for a cluster.
export CLUSTER_DIR ?= /var/lib/deckhand-cluster
export KUBECONFIG ?= $(CLUSTER_DIR)/kubeconfig
e2e demo demo-images demo-install soak bench-cluster bench-failover bench-scale check-scale: export KUBECONFIG = $(CLUSTER_DIR)/kubeconfig
kind-up kind-down e2e-kind demo-kind: export KUBECONFIG = $(CURDIR)/dist/kind/kubeconfig
export KUBEBUILDER_ASSETS = $(CURDIR)/bin/assets
export MCP_MODULES = $(CURDIR)/bin/mcp/node_modules

# What images are called. This name no registry knows: the test cluster is
# given its images by hand.
export REGISTRY ?= deckhand.test
export TAG ?= dev

# Where releases are, and the version that make release-check builds.
RELEASE_REGISTRY ?= ghcr.io/deckhand-dev
RELEASE_VERSION = v0.0.0-check

# The release before this one, from which make e2e upgrades and to which it rolls back: a
# tag, or a commit while there is no release. Its API and stored forms are supported.
PREVIOUS ?= 18e3970c119580bb14ea8bb391c27bdfadaf220c

# All builds but those with the race detector have the same flags, so that a package is
# compiled once for lint, tests and images.
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
export CGO_ENABLED = 0
VERSION = $$(git describe --tags --always --dirty 2>/dev/null || echo unknown)
STATIC = -ldflags="-s -w -X main.version=$(VERSION)"
MODULES = . examples/custom-runner examples/custom-runner-template test/cluster test/gitops test/monitoring test/oldest hack/tools hack/tools/lint hack/tools/prose
# What make test writes about this module; without gcc, which the race detector needs, it is the first alone.
comma := ,
space := $(subst ,, )
RAN = $(addprefix dist/,test.json $(if $(shell command -v gcc),long.json race.json))
GOTESTSUM = bin/tools/gotestsum --format=pkgname --format-hide-empty-pkg
KUBECONFORM = bin/tools/kubeconform -strict -summary -schema-location 'bin/schemas/{{.ResourceKind}}{{.KindSuffix}}.json'

.PHONY: try demo-images demo-install precompile catalog help generate generated fmt lint test test-plain test-race test-long test-modules test-oldest stories mutants fuzz vulncheck smoke-providers build image images release release-check release-push assets schemas chart workflows \
	cluster-up cluster-down cluster-load toolbox deploy previous e2e e2e-there kind-up kind-down e2e-kind demo-kind reliability check-reliability check-skipped soak demo bench bench-cluster bench-failover bench-scale check-scale performance verify words tidy clean

help: ## List the targets
	@awk -F':.*## ' '/^##@/ {print substr($$0, 4)} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' Makefile

##@ To write code

catalog: ## Write the list prices and context windows from a version of the npm package @pydantic/genai-prices: VERSION, and DATE, the day of its publication
	npm pack --silent --pack-destination $(or $(TMPDIR),/tmp) @pydantic/genai-prices@$(VERSION)
	go run ./hack/catalog $(or $(TMPDIR),/tmp)/pydantic-genai-prices-$(VERSION).tgz $(DATE)

generate: bin/tools/controller-gen bin/tools/crd-ref-docs ## Generate deep copies, CRDs, the operator's role and reference pages
	bin/tools/controller-gen object crd rbac:roleName=deckhand-manager \
		paths=./api/... paths=./internal/... \
		output:crd:dir=config/crd/bases output:rbac:dir=config/rbac
	go run ./hack/crddocs config/crd/bases/*.yaml
	mkdir -p charts/deckhand/files/crd charts/deckhand/files/rbac
	cp config/crd/bases/*.yaml charts/deckhand/files/crd/ # a chart cannot read outside its directory
	find config/rbac -name '*.yaml' ! -name kustomization.yaml -exec cp {} charts/deckhand/files/rbac/ ';'
	go run ./hack/reference
	bin/tools/crd-ref-docs --config=hack/apidoc/config.yaml --templates-dir=hack/apidoc --renderer=markdown \
		--source-path=api/v1alpha1 --output-path=docs/reference/api.md --log-level=ERROR
	go run ./hack/reliability

fmt: bin/tools/golangci-lint ## Format the code
	bin/tools/golangci-lint fmt ./...

lint: bin/tools/golangci-lint ## Run the linters
	hack/lint

test: test-plain test-race test-modules test-long ## Run the tests, including those against a real API server
	hack/slowest $(RAN)

test-plain: bin/assets bin/mcp bin/tools/gotestsum bin/tools/helm bin/tools/kustomize
	mkdir -p dist
	rm -f dist/test.json
	packages=./...
	[ -z "$$(command -v gcc)" ] || packages=$$(hack/racy others)
	$(GOTESTSUM) --jsonfile=dist/test.json -- -vet=off -p=3 -timeout=20m $$packages

test-race: bin/assets bin/mcp bin/tools/gotestsum bin/tools/helm bin/tools/kustomize
	mkdir -p dist
	rm -f dist/race.json
	[ -n "$$(command -v gcc)" ] || exit 0
	packages=$$(hack/racy)
	CGO_ENABLED=1 $(GOTESTSUM) --jsonfile=dist/race.json -- -race -short -vet=off -p=4 -timeout=20m -ldflags=-w $$packages

test-long: bin/assets bin/mcp bin/tools/gotestsum bin/tools/helm bin/tools/kustomize
	mkdir -p dist
	rm -f dist/long.json
	[ -n "$$(command -v gcc)" ] || exit 0
	tests=$$(hack/racy long)
	$(GOTESTSUM) --jsonfile=dist/long.json -- -vet=off -p=3 -timeout=20m $$tests

test-modules: bin/assets bin/tools/gotestsum bin/tools/helm bin/tools/kustomize
	mkdir -p dist
	(cd examples/custom-runner && ../../$(GOTESTSUM) --jsonfile=../../dist/custom-runner.json -- -vet=off ./...)
	(cd examples/custom-runner-template && ../../$(GOTESTSUM) --jsonfile=../../dist/custom-runner-template.json -- -vet=off ./...)
	(cd test/cluster && ../../$(GOTESTSUM) --jsonfile=../../dist/cluster.json -- -vet=off ./cmd/... ./internal/...)
	(cd test/gitops && ../../$(GOTESTSUM) --jsonfile=../../dist/gitops.json -- -vet=off ./...)
	(cd test/monitoring && ../../$(GOTESTSUM) --jsonfile=../../dist/monitoring.json -- -vet=off ./...)

test-oldest: bin/assets-oldest bin/tools/gotestsum bin/tools/helm ## Test CRDs and policies on the oldest API server that the chart supports
	bin/assets-oldest/kube-apiserver --version
	mkdir -p dist
	KUBEBUILDER_ASSETS=$(CURDIR)/bin/assets-oldest $(GOTESTSUM) --jsonfile=dist/oldest.json -- -count=1 -vet=off ./test/api ./test/policy

stories: bin/assets bin/tools/helm bin/tools/kustomize ## Rewrite the golden files
	go test $$(grep -rlE --include='*_test.go' '"update"' api cmd internal runner test/render | xargs -n1 dirname | sort -u | sed 's|^|./|') -update
	go -C test/gitops test -run TestHealthTableIsUpToDate . -update

mutants: bin/assets ## Change one thing at a time in packages that decide, and fail if their tests do not notice: PACKAGES, BASE (a commit to compare with)
	go run ./hack/mutants $(if $(BASE),-changed=$(BASE)) $(PACKAGES)

fuzz: ## Fuzz each target for FUZZ_TIME (1m by default)
	hack/fuzz

vulncheck: bin/tools/govulncheck ## Look for known vulnerabilities (needs the Internet)
	bin/tools/govulncheck ./...

smoke-providers: ## Ask each model provider whose key is set for a short answer (needs the Internet, costs cents)
	go test -tags=providers -count=1 -v ./test/providers

##@ To build

build: ## Build static binaries into bin/
	go build $(STATIC) -o bin/ ./cmd/... ./test/modelserver ./test/gitserver
	go -C examples/custom-runner build $(STATIC) -o $(CURDIR)/bin/custom-runner .

image: build bin/cluster ## Build images for the test cluster, without a container engine
	hack/images manager runner modelserver gitserver custom-runner

images: ## Build the images with docker
	for target in manager runner; do
		docker build --target "$$target" --build-arg VERSION="$(VERSION)" -t "$(REGISTRY)/$$target:$(TAG)" .
	done

release: bin/cluster bin/tools/helm ## Build the files and images of VERSION=v0.1.0 into dist/release
	hack/release/build "$(VERSION)" dist/release $(RELEASE_REGISTRY)

release-check: bin/cluster bin/tools/helm ## Check that two builds of a release are the same (many minutes the first time)
	hack/release/check-reproducible $(RELEASE_VERSION) $(RELEASE_REGISTRY)

release-push: bin/cluster bin/tools/helm ## Push images and chart of dist/release, and publish its files as VERSION
	hack/release/push "$(VERSION)" dist/release $(RELEASE_REGISTRY)

precompile: ## Compile Kubernetes, its oldest version and the previous release into Go's cache
	go -C test/cluster build -o /dev/null ./k8s
	go -C test/oldest build -o /dev/null .
	git cat-file -e $(PREVIOUS)^{commit} && hack/previous $(PREVIOUS) dist/precompiled
	rm -rf dist/precompiled

assets: bin/assets ## Build the API server that tests run against, for `go test` by hand

schemas: ## Write JSON schemas of Kubernetes and of Deckhand's kinds into bin/schemas
	@go -C test/cluster mod download k8s.io/kubernetes
	rm -rf bin/schemas
	go run ./hack/schemas bin/schemas "$$(go -C test/cluster list -m -f '{{.Dir}}' k8s.io/kubernetes)/api/openapi-spec/v3" config/crd/bases

chart: schemas bin/tools/helm bin/tools/kustomize bin/tools/kubeconform ## Check the chart, the kustomization and the samples
	bin/tools/helm lint --strict charts/deckhand
	bin/tools/helm template deckhand charts/deckhand --namespace deckhand-system | $(KUBECONFORM)
	bin/tools/helm template deckhand charts/deckhand --namespace deckhand-system --set 'watchNamespaces={team-a,team-b}' | $(KUBECONFORM)
	bin/tools/kustomize build config/default | $(KUBECONFORM)
	bin/tools/kustomize build config/samples | $(KUBECONFORM)

workflows: bin/tools/actionlint ## Check the workflows of GitHub, and shell scripts
	command -v shellcheck >/dev/null || { echo "shellcheck is missing: apt-get install shellcheck" >&2; exit 1; }
	bin/tools/actionlint -pyflakes=
	shellcheck $$(git grep -lE '^#!.*(bash|sh)$$')

##@ To run it

try: ## Show one Agent, one Run and its result on this machine, without a cluster, root or a key
	@hack/try

cluster-up: bin/cluster bin/k8s bin/pause ## Start a Kubernetes cluster on this machine (needs root)
	bin/cluster up

cluster-down: bin/cluster ## Delete the cluster of cluster-up
	bin/cluster down

cluster-load: image ## Load the images into the cluster of cluster-up
	bin/cluster load dist/*.tar

toolbox: bin/cluster bin/mcp ## Load images with a shell, Git, Python, Go and MCP servers, which e2e needs
	bin/cluster toolbox -registry $(REGISTRY) -tag $(TAG) -modules bin/mcp

deploy: bin/tools/helm ## Install the chart into the cluster of KUBECONFIG
	PATH="$(CLUSTER_DIR)/bin:$$PATH" hack/installer Helm
	bin/tools/helm upgrade --install deckhand charts/deckhand \
		--namespace deckhand-system --create-namespace --wait --timeout=5m \
		--set image.repository=$(REGISTRY)/manager,image.tag=$(TAG) \
		--set runner.image.repository=$(REGISTRY)/runner,runner.image.tag=$(TAG) \
		--set-string podAnnotations.build="$$(sha256sum bin/manager | cut -c1-12)"

previous: bin/cluster cluster-up ## Build the previous release and load its images into the cluster of cluster-up
	hack/previous $(PREVIOUS) dist/previous $(REGISTRY)
	bin/cluster load dist/previous/*.tar

e2e: cluster-up cluster-load toolbox previous deploy bin/tools/gotestsum ## Run the end-to-end tests and the examples on the cluster of cluster-up
	$(GOTESTSUM) --jsonfile=dist/e2e.json -- -tags=e2e,upgrade -count=1 -parallel=8 -timeout=30m ./test/e2e/...

e2e-there: build bin/tools/gotestsum ## Run the end-to-end tests on the cluster of KUBECONFIG, where Deckhand is installed
	mkdir -p dist
	$(GOTESTSUM) --jsonfile=dist/e2e.json -- -tags=e2e -count=1 -parallel=6 -timeout=30m ./test/e2e/...

kind-up: bin/tools/kind build ## Start a kind cluster with the images of the tests (needs docker and kubectl)
	hack/kind/cluster up
	hack/kind/cluster load

kind-down: bin/tools/kind ## Delete the cluster of kind-up
	hack/kind/cluster down

e2e-kind: kind-up deploy bin/tools/gotestsum ## Run the end-to-end tests on a kind cluster; KIND_IMAGE, KIND_WORKERS and KIND_NETWORK=calico change it
	$(GOTESTSUM) --jsonfile=dist/e2e.json -- -tags=e2e -count=1 -parallel=4 -timeout=60m ./test/e2e/...

demo-kind: kind-up ## Show one Agent, one Run and its result on a kind cluster
	hack/install
	PATH="$(CURDIR)/bin:$$PATH" hack/demo.sh

reliability: bin/assets bin/mcp bin/tools/gotestsum bin/tools/helm bin/tools/kustomize ## Run the tests that docs/reliability.md lists, and write their results to it
	hack/reliability/run $(GOTESTSUM)

check-reliability: ## Check that each row of docs/reliability.md passed in the last test and e2e
	go run ./hack/reliability -check $(RAN) dist/gitops.json dist/e2e.json

check-skipped: ## Check that each test ran in the last test, test-oldest and e2e
	go run ./hack/skipped $(subst $(space),$(comma),$(RAN)) dist/custom-runner.json dist/custom-runner-template.json dist/cluster.json dist/gitops.json dist/monitoring.json dist/oldest.json dist/e2e.json

soak: bin/assets cluster-up cluster-load toolbox deploy ## Kill everything at random, SOAK_KILLS times and 100 times in the cluster, and write docs/soak.md
	hack/soak/run

# config/demo names these images.
demo demo-images: override REGISTRY = deckhand.test
demo demo-images: override TAG = dev
demo: cluster-up demo-images demo-install ## Show one Agent, one Run and its result on the cluster of cluster-up (the first time about 10 minutes)
	PATH="$(CLUSTER_DIR)/bin:$(CURDIR)/bin:$$PATH" hack/demo.sh

demo-images: bin/cluster
	hack/compile $(STATIC) -o bin/ ./cmd/manager ./cmd/runner ./cmd/sandbox ./cmd/kubectl-deckhand ./test/modelserver
	hack/images manager runner modelserver
	bin/cluster load dist/manager.tar dist/runner.tar dist/modelserver.tar

demo-install:
	PATH="$(CLUSTER_DIR)/bin:$$PATH" hack/install

bench: ## Run the Go benchmarks, for benchstat (some minutes)
	mkdir -p dist
	hack/bench parts | tee dist/bench.txt

bench-cluster: cluster-up cluster-load deploy ## Measure Deckhand on the cluster of cluster-up
	hack/bench cluster | tee dist/bench-cluster.txt

bench-failover: cluster-up cluster-load deploy ## Measure how long there is no leader after the leader was killed, and write docs/performance.md
	hack/bench failover | tee dist/bench-failover.txt
	go run ./hack/performance -failover dist/bench-failover.txt docs/performance.md

bench-scale: cluster-up cluster-load deploy ## Measure thousands of Runs on the cluster, and write the results to docs/performance.md
	hack/bench scale | tee dist/bench-scale.txt
	go run ./hack/performance -scale dist/bench-scale.txt docs/performance.md

check-scale: cluster-up cluster-load deploy ## Check the invariants of bench-scale and its counts with a hundredth of its load
	BENCH_SCALE_PERCENT=1 hack/bench scale | tee dist/check-scale.txt
	go run ./hack/performance -counts dist/check-scale.txt

performance: bench ## Run the Go benchmarks and write docs/performance.md
	go run ./hack/performance -parts dist/bench.txt -cluster dist/bench-cluster.txt docs/performance.md

##@ To be sure

verify: generated words lint chart workflows ## Check generated files, names, prose, code, chart and workflows

generated: bin/tools/controller-gen bin/tools/crd-ref-docs bin/tools/helm bin/tools/kustomize
	hack/unchanged $(MAKE) --no-print-directory generate tidy

words: bin/tools/vale ## Check names against hack/words/identifiers.txt, and prose against the style in hack/words/styles
	rm -rf dist/prose
	go run ./hack/words prose dist/prose
	bin/tools/vale --config=hack/words/vale.ini --output=line *.md docs examples dist/prose |
		sed -E 's|^dist/prose/([^:]*)\.txt:|\1:|'
	go run ./hack/words names api cmd internal runner

tidy: ## Bring the go.mod files up to date
	for module in $(MODULES); do
		go -C "$$module" mod tidy
	done

clean: ## Remove what was built
	rm -rf bin dist

# Programs built once.

bin/tools/golangci-lint: hack/tools/lint/go.mod hack/tools/lint/go.sum
	go -C hack/tools/lint build -o $(CURDIR)/$@ $$(go -C hack/tools/lint list tool)

bin/tools/vale: hack/tools/prose/go.mod hack/tools/prose/go.sum
	CGO_ENABLED=1 go -C hack/tools/prose build -o $(CURDIR)/$@ $$(go -C hack/tools/prose list tool)

bin/tools/%: hack/tools/go.mod hack/tools/go.sum
	go -C hack/tools build -o $(CURDIR)/$@ $$(go -C hack/tools list tool | grep -E '/$*(/v[0-9]+)?$$')

bin/cluster: $(wildcard test/cluster/go.* test/cluster/cmd/cluster/* test/cluster/internal/*/* test/cluster/internal/*/*/*)
	hack/compile -C test/cluster $(STATIC) -o $(CURDIR)/$@ ./cmd/cluster

bin/pause: test/cluster/pause/main.go
	go -C test/cluster build $(STATIC) -o $(CURDIR)/$@ ./pause

bin/k8s: $(wildcard test/cluster/go.* test/cluster/k8s/*.go test/cluster/internal/dns/*.go)
	echo "Building Kubernetes from source; the first time takes some minutes" >&2
	version=$$(go -C test/cluster list -m -f '{{.Version}}' k8s.io/kubernetes)
	IFS=v. read -r _ major minor _ <<<"$$version"
	stamp="-X k8s.io/component-base/version"
	hack/compile -C test/cluster -o $(CURDIR)/$@ \
		-ldflags="-s -w $$stamp.gitVersion=$$version $$stamp.gitMajor=$$major $$stamp.gitMinor=$$minor" ./k8s

bin/mcp: test/mcp/package.json test/mcp/package-lock.json
	command -v npm >/dev/null || { echo "npm is missing: MCP servers of Node.js are left out" >&2; exit 0; }
	mkdir -p $@
	cp $^ $@
	npm ci --prefix=$@ --ignore-scripts --prefer-offline --no-audit --no-fund --loglevel=error || { rm -rf $@; exit 1; }
	touch $@

bin/assets: bin/cluster bin/k8s
	bin/cluster assets $@
	touch $@

bin/assets-oldest: bin/assets $(wildcard test/oldest/*)
	echo "building the oldest API server from source; the first time takes some minutes" >&2
	version=$$(go -C test/oldest list -m -f '{{.Version}}' k8s.io/kubernetes)
	IFS=v. read -r _ major minor _ <<<"$$version"
	stamp="-X k8s.io/component-base/version"
	mkdir -p $@
	go -C test/oldest build -o $(CURDIR)/$@/kube-apiserver \
		-ldflags="-s -w $$stamp.gitVersion=$$version $$stamp.gitMajor=$$major $$stamp.gitMinor=$$minor" .
	ln -sfn ../k8s $@/etcd
	ln -sfn ../k8s $@/kubectl
	touch $@
