#!/usr/bin/env bash
# broker.sh VERSION DIR PORT CONTROLLER_PORT [MTLS_PORT] runs one node of Apache Kafka,
# both broker and controller, on loopback, with its data in DIR. Started again on the same
# folder it goes on with the data. Run install.sh first.
#
# FLANK_KAFKA_VOTERS makes it a node of a cluster: all nodes as ID@HOST:CONTROLLER_PORT,
# separated by commas. FLANK_KAFKA_NODE is the ID of this node. From three nodes on the
# cluster keeps three replicas, and takes a message when two of them have it. A node that is
# not among the voters is a broker only.
#
# FLANK_KAFKA_SESSION_MS is how long a broker may be silent before the controller takes it for
# dead, 2000 by default: a busy machine needs more, and a broker that was killed comes back later.
#
# With MTLS_PORT every client must log in: PORT speaks SCRAM-SHA-512 over TLS, MTLS_PORT
# asks for a client certificate. Without an ACL only the CNs broker1 and admin have rights.
# DIR must then hold keystore.pem (certificate and key of broker1) and ca.pem.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
node="${FLANK_KAFKA_NODE:-1}" voters="${FLANK_KAFKA_VOTERS:-1@127.0.0.1:$4}"
roles=broker,controller
case ",$voters" in *",$node@"*) ;; *) roles=broker ;; esac
replicas=1 enough=1
[ "$(tr -cd , <<<"$voters" | wc -c)" -ge 2 ] && replicas=3 enough=2
version="$1" dir="$(cd "$2" && pwd)" port="$3" controller="$4" mtls="${5:-}"
lib="${FLANK_KAFKA_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/flank}/kafka-$version/lib"
[ -d "$lib" ] || { echo "broker.sh: no $lib: run scripts/kafka/install.sh $version" >&2; exit 1; }

# Two brokers on one folder ruin each other.
exec 9>"$dir/lock"
flock -n 9 || { echo "broker.sh: $dir is in use by another broker" >&2; exit 1; }

cat >"$dir/server.properties" <<EOF
process.roles=$roles
node.id=$node
controller.quorum.voters=$voters
controller.listener.names=CONTROLLER
log.dirs=$dir/data
auto.create.topics.enable=false
message.max.bytes=16777216
default.replication.factor=$replicas
min.insync.replicas=$enough
offsets.topic.replication.factor=$replicas
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=$replicas
transaction.state.log.min.isr=$enough
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=$replicas
share.coordinator.state.topic.min.isr=$enough
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=${FLANK_KAFKA_SESSION_MS:-2000}
broker.heartbeat.interval.ms=500
log.cleaner.dedupe.buffer.size=4194304
EOF
if [ -z "$mtls" ]; then
  listeners="PLAINTEXT://127.0.0.1:$port"
  [ "$roles" = broker ] || listeners="$listeners,CONTROLLER://127.0.0.1:$controller"
  cat >>"$dir/server.properties" <<EOF
listeners=$listeners
advertised.listeners=PLAINTEXT://127.0.0.1:$port
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
EOF
else
  cat >>"$dir/server.properties" <<EOF
listeners=SASL_SSL://127.0.0.1:$port,MTLS://127.0.0.1:$mtls,CONTROLLER://127.0.0.1:$controller
advertised.listeners=SASL_SSL://127.0.0.1:$port,MTLS://127.0.0.1:$mtls
listener.security.protocol.map=SASL_SSL:SASL_SSL,MTLS:SSL,CONTROLLER:SSL
inter.broker.listener.name=MTLS
ssl.keystore.type=PEM
ssl.keystore.location=$dir/keystore.pem
ssl.truststore.type=PEM
ssl.truststore.location=$dir/ca.pem
listener.name.mtls.ssl.client.auth=required
listener.name.controller.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^CN=([^,]+).*$/\$1/,DEFAULT
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:broker1;User:admin
EOF
fi

# Kafka 3 logs with Log4j 1, Kafka 4 with Log4j 2.
cat >"$dir/log4j.properties" <<EOF
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
EOF
cat >"$dir/log4j2.properties" <<EOF
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
EOF
# An archive of classes halves the time to start. Java passes over one that does not fit.
java=(java -XX:+UseSerialGC)
if [ -n "${FLANK_KAFKA_ARCHIVE:-}" ]; then
  broker=(-XX:ArchiveClassesAtExit="$FLANK_KAFKA_ARCHIVE")
else
  broker=()
  [ ! -e "$lib/../classes.jsa" ] || java+=(-XX:SharedArchiveFile="$lib/../classes.jsa" -Xlog:cds=off -Xlog:cds+dynamic=off)
fi
logging=(-Dlog4j.configuration="file:$dir/log4j.properties" -Dlog4j2.configurationFile="$dir/log4j2.properties")

# Formatting takes a second, so it is done only once.
if [ ! -e "$dir/data/meta.properties" ]; then
  "${java[@]}" -XX:TieredStopAtLevel=1 "${logging[@]}" -cp "$lib/*" kafka.tools.StorageTool format --ignore-formatted \
    -c "$dir/server.properties" -t 4L6g3nShT-eMCtK--X86sw >/dev/null
fi
# The broker ends when its test program ends or is killed. The number of a broker that has ended may be another
# program's by now, which this must not kill: so it asks whether the broker is still its parent.
alive() { local parent; read -r _ _ _ parent _ <"/proc/$BASHPID/stat" && [ "$parent" = $$ ]; }
if [ -n "${FLANK_KAFKA_OWNER:-}" ]; then
  (while kill -0 "$FLANK_KAFKA_OWNER" && alive; do sleep 1; done; alive && kill -9 $$) 9>&- >/dev/null 2>&1 &
fi
exec "${java[@]}" -Xmx512m -XX:+UnlockDiagnosticVMOptions -XX:CompilerDirectivesFile="$here/compiler.json" ${broker[@]+"${broker[@]}"} "${logging[@]}" -cp "$lib/*" kafka.Kafka "$dir/server.properties"
