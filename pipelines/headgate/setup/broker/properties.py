"""The broker's settings, as the files that Kafka and Log4j read."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.machine.process_tree.ports import HOST

DATA = "data"
SERVER_LOG = "logs/server.log"

# One node: one replica of everything, small internal topics, no delay for more group members.
_ONE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # Relative to the broker's working directory: a comma in its path would separate two paths.
    "log.dirs": DATA,
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # Retention uses the records' timestamps: it would delete events of last year within minutes.
    "log.retention.ms": "-1",
    # A killed broker cannot register again before its session times out: 9 s by default.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # The default is a quarter of the heap.
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}

LOG4J = f"""\
status = error
shutdownHook = disable
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
logger.settings.name = org.apache.kafka.common.config.AbstractConfig
logger.settings.level = warn
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {SERVER_LOG}
appender.file.filePattern = {SERVER_LOG}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}}{{UTC}}Z %p %m (%c{{1}})%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def server_properties(port: int, controller_port: int, more: Mapping[str, str]) -> str:
    """``server.properties``. ``more`` overrides the defaults; its values are not escaped."""
    every = {
        **_ONE_NODE,
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        # Set here because the port changes with each start; `format --standalone` would write it
        # into the data.
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        **more,
    }
    return "".join(f"{key}={value}\n" for key, value in sorted(every.items()))
