# Flags go along in DEMO, BENCH and PACKAGES, for example: make demo DEMO="--link 512kbit"
#
# demo      two hosts, a thin link and a tunnel on this machine; needs a Rust toolchain and a C compiler
# build     the program strait; build-all also strait-demo, strait-lab, strait-broker and strait-directory
# test      what must hold before a change: form, lints, tests, end-to-end tests, seeds of the fuzz targets; prints in the end which
#           tests were skipped and why, and what is left to test-all
# test-all  besides: full matrices, documentation, licences of dependencies, features, fuzzing, other processors; takes hours
# check     what takes seconds after a build: form, scripts, dependencies, lints, documentation
# packages  a Debian package, static programs, an OCI image, in target/packages; packages-test tests them, as root on Debian
# bench     figures of speed and memory, side by side with others, as ratios

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
RELEASE := $(CARGO) build --release --locked

.PHONY: demo test test-all bench packages packages-test build build-demo build-all check setup-build setup clean

demo: build-demo
	$(TARGET)/release/strait demo $(DEMO)

build: setup-build
	$(RELEASE) --package strait

# Together, so that what both have is compiled once: neither gives the other a feature (crates/cli/tests/dependencies.rs).
build-demo: setup-build
	$(RELEASE) --package strait --package strait-demo

# Apart: built with the first two, `strait` would have the features that only the others want.
build-all: build-demo
	$(RELEASE) --package strait-broker --package strait-directory
	$(RELEASE) --package strait-lab-cli

test: setup-build
	scripts/test

test-all: setup-build
	scripts/test all

check:
	scripts/test check

bench: setup build-all
	$(RELEASE) --package strait-bucket
	$(CARGO) run --release --locked --package strait-bench -- $(BENCH)

packages: setup-build
	scripts/packages $(PACKAGES)

packages-test:
	scripts/test-packages

# What building needs, and what the tests need besides; installed where that is possible, named where it is not.
setup-build:
	scripts/setup build

setup:
	scripts/setup test

clean:
	$(CARGO) clean
