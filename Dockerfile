# Strata in a container: `docker build -t strata .`
#
# The server listens on all addresses of the container, so it starts only if the store has an API key:
#   docker run --rm -v strata:/data strata keys create --user ada
#   docker run -d -v strata:/data -p 127.0.0.1:8100:8100 strata

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --package strata \
    && cp target/release/strata /strata

FROM debian:bookworm-slim
# The binary has everything inside: no package is installed.
RUN useradd --system --uid 10001 --create-home --home-dir /data strata
COPY --from=build /strata /usr/local/bin/strata
USER 10001
ENV STRATA_LISTEN=0.0.0.0:8100 \
    STRATA_DATA_DIR=/data \
    STRATA_LOG_FORMAT=json
WORKDIR /data
VOLUME /data
EXPOSE 8100
# The image has no HTTP client, but bash can open connections.
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8100 && printf 'GET /readyz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && grep -q '^HTTP/1.[01] 200' <&3"]
ENTRYPOINT ["strata"]
CMD ["serve"]
