# SPDX-License-Identifier: Apache-2.0
# One image that holds every executable of IdentityBus. There is no entry point: each container names its command.

FROM swift:6.3-bookworm AS build
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

FROM debian:bookworm-slim
# --build-arg VERSION="$(cat VERSION)" --build-arg REVISION="$(git rev-parse HEAD)"
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="IdentityBus" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates libpq5 librdkafka1 libsqlite3-0 libstdc++6 libzstd1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /var/lib/identitybus --shell /usr/sbin/nologin identitybus \
    && install -d -o identitybus -g identitybus /var/lib/identitybus
COPY --from=build /out/ /usr/local/bin/
USER identitybus
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
