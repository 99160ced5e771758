# syntax=docker/dockerfile:1

# The same static programs as `make build`, in images that hold nothing else.
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY internal internal
COPY runner runner
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
RUN --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags="-s -w -X main.version=$VERSION" -o /out/ ./cmd/manager ./cmd/runner ./cmd/sandbox

# What a Run's pod executes, and what it puts into sandboxes.
FROM gcr.io/distroless/static:nonroot AS runner
LABEL org.opencontainers.image.title="Deckhand runner" \
      org.opencontainers.image.description="Executes one attempt of a Deckhand Run" \
      org.opencontainers.image.source="https://github.com/deckhand-dev/deckhand" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/runner /runner
COPY --from=build /out/sandbox /sandbox
# Any user may start here: the home of the base image is closed to others.
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/runner"]

# The operator.
FROM gcr.io/distroless/static:nonroot AS manager
LABEL org.opencontainers.image.title="Deckhand manager" \
      org.opencontainers.image.description="Kubernetes operator that runs AI agents as custom resources" \
      org.opencontainers.image.source="https://github.com/deckhand-dev/deckhand" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/manager /manager
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/manager"]
