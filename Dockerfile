# SPDX-License-Identifier: Apache-2.0
# One image that holds every executable of IdentityBus. There is no entry point: each container names its command.
#
# The two images below are named by tag: what a tag leads to changes with every security update, and only a registry knows
# its digest. Who releases an image looks the digests up, builds with them, and keeps them with the release:
#
#   docker buildx imagetools inspect debian:bookworm-slim
#   docker build --build-arg SWIFT_IMAGE=swift:6.3-bookworm@sha256:... --build-arg BASE_IMAGE=debian:bookworm-slim@sha256:... \
#     --build-arg VERSION="$(cat VERSION)" --build-arg REVISION="$(git rev-parse HEAD)" -t identitybus .
#
# What is in the image, as CycloneDX: docs/operations.md "Containers".
ARG SWIFT_IMAGE=swift:6.3-bookworm
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${SWIFT_IMAGE} AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends librdkafka-dev libsqlite3-dev libpq-dev libzstd-dev pkg-config zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# First only what names the dependencies: they are fetched again only when that changes.
COPY Package.swift Package.resolve[d] ./
RUN swift package resolve
COPY Plugins Plugins
COPY Shared Shared
COPY Services Services
# Named by the package, and so they must be there.
COPY Benchmarks Benchmarks
COPY Tests Tests
# Swift's own libraries go into the executables; C libraries come from the runtime image.
RUN swift build -c release --static-swift-stdlib \
    && mkdir /out \
    && cd .build/release \
    && find . -maxdepth 1 -type f -name 'identitybus*' ! -name identitybus-bench -executable -exec install -s -t /out {} +

FROM ${BASE_IMAGE}
ARG BASE_IMAGE
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="IdentityBus" \
    org.opencontainers.image.description="Who is using this install right now: services on Kafka, their gateway and their command line" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}" \
    org.opencontainers.image.base.name="${BASE_IMAGE}"
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libpq5 librdkafka1 libsqlite3-0 libstdc++6 libzstd1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/identitybus --shell /usr/sbin/nologin identitybus \
    && install -d -o identitybus -g identitybus /var/lib/identitybus \
    && install -d /usr/share/identitybus \
    && dpkg-query -W -f '${Package}\t${Version}\t${Architecture}\n' >/usr/share/identitybus/packages.tsv
# For the list of what is in it (scripts/sbom).
COPY --from=build /build/Package.resolved /usr/share/identitybus/
COPY --from=build /out/ /usr/local/bin/
# By number: Kubernetes cannot tell of a name whether it is root's (runAsNonRoot).
USER 10001:10001
WORKDIR /var/lib/identitybus
# In a container the health port has to be reachable from outside of it. The rest is set where the container is run.
ENV HTTP_HOST=0.0.0.0 \
    HTTP_PORT=8080 \
    GATEWAY_DRAIN_DELAY_SECONDS=5 \
    DATA_DIR=/var/lib/identitybus \
    IDENTITYBUS_APPS=/etc/identitybus/apps.yaml \
    IDENTITYBUS_COMMIT="${REVISION}"
EXPOSE 8080
CMD ["identitybus", "--help"]
