# The four programs on an empty base.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /out/ ./cmd/ingest ./cmd/trainer ./cmd/monitor ./cmd/standalone \
 && mkdir -p /out/data

FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/ingest /out/trainer /out/monitor /out/standalone /usr/local/bin/
COPY --from=build --chown=65532:65532 /out/data /data
