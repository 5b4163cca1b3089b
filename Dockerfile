# The four programs on an empty base. The images are pinned by version; add their digests where the registries can be
# reached (`docker buildx imagetools inspect golang:1.26` prints one, and golang:1.26@sha256:… is what to write).
#
#   docker build --build-arg VERSION=v1.0.0 --build-arg COMMIT=$(git rev-parse HEAD) .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY third_party/ third_party/
RUN go mod download
COPY . .
ARG VERSION= COMMIT=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-X github.com/flank-tcm/flank/cmd/internal/cli.version=$VERSION -X github.com/flank-tcm/flank/cmd/internal/cli.commit=$COMMIT" \
    -o /out/ ./cmd/ingest ./cmd/trainer ./cmd/monitor ./cmd/standalone \
 && mkdir -p /out/data

FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/ingest /out/trainer /out/monitor /out/standalone /usr/local/bin/
COPY --from=build --chown=65532:65532 /out/data /data
