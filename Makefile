# Flags go along in DEMO, BENCH and PACKAGES, for example: make demo DEMO="--link 512kbit"
#
# demo    two hosts, a thin link and a tunnel on this machine; needs a Rust toolchain and a C compiler
# test    everything that must hold: form, lints, dependencies, features, documentation, tests, end-to-end tests, a short
#         fuzz run; prints in the end which tests were skipped and why
# packages  a Debian package, static programs, an OCI image, in target/packages; packages-test tests them, as root on Debian
# bench   figures of speed and memory, side by side with others, as ratios

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Seconds of fuzzing for each target in `make test`.
FUZZ ?= 2

.PHONY: demo test bench packages packages-test build build-lab check setup-build setup clean

demo: build build-lab
	$(TARGET)/release/strait demo $(DEMO)

# Each by itself: built together, `strait` would have the features that only the others want.
build: setup-build
	$(CARGO) build --release --locked --package strait
	$(CARGO) build --release --locked --package strait-broker
	$(CARGO) build --release --locked --package strait-directory

build-lab: setup-build
	$(CARGO) build --release --locked --package strait-lab-cli

test: setup
	scripts/test $(FUZZ)

# The quick part of `make test`: form, scripts, dependencies, lints, documentation.
check:
	scripts/test check

bench: setup build
	$(CARGO) build --release --locked --package strait-bucket
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
