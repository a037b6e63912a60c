# SPDX-License-Identifier: Apache-2.0
"""An Apache Kafka of a test's own, one broker that is its own controller, from the distribution in TEST_KAFKA_HOME: one listener
that lets everybody in, one for SCRAM, one for PLAIN and one for tokens; these three speak TLS where there is an authority."""

import base64
import json
import os
import subprocess
import time
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from .broker import Broker
from .fakes import Authority
from .ports import free_port
from .secrets import KAFKA_TOKEN_HEADER, kafka_password
from .waiting import until

HOME = os.environ.get("TEST_KAFKA_HOME", "")
# The broker closes a connection that has been signed in for longer, which only librdkafka 2.2 and later do without.
SIGNED_IN_FOR = 15.0


class Listener(Broker):
    """What the tests' own clients use is the open door; services come by this one."""

    def __init__(self, kafka: "Kafka", port: int, settings: dict[str, str]) -> None:
        super().__init__(kafka.servers)
        self.port = port
        tls = {"KAFKA_SSL_CA_LOCATION": str(kafka.authority.certificate)} if kafka.authority else {}
        self._own = {
            "KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}", "KAFKA_SECURITY_PROTOCOL": kafka.protocol, **tls, **settings}

    def client(self, **settings: object) -> dict[str, object]:
        return {"bootstrap.servers": self.servers, **settings}

    def service_environment(self) -> dict[str, str]:
        return dict(self._own)


class Kafka:
    _DOORS = ("SCRAM", "PLAIN", "TOKEN")

    def __init__(self, directory: Path, has_rights: bool = False, authority: Authority | None = None) -> None:
        """`has_rights`: who has signed in may do nothing but what an ACL says; who comes by the open door, everything.
        `authority`: whoever signs in does it over TLS; the broker has a certificate of this authority, for 127.0.0.1."""
        directory.mkdir(parents=True)
        self._has_rights = has_rights
        self.authority = authority
        self.protocol = "SASL_SSL" if authority else "SASL_PLAINTEXT"
        self._directory = directory
        self._ports = {name: free_port() for name in ("OPEN", *self._DOORS, "CONTROLLER")}
        self._plain = kafka_password()
        self._process: subprocess.Popen[bytes] | None = None
        self.servers = f"127.0.0.1:{self._ports['OPEN']}"

    def start(self) -> "Kafka":
        file = self._directory / "server.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in self._settings().items()))
        # Not with a hyphen at its beginning, which would be an option.
        cluster = base64.urlsafe_b64encode(b"\0" + os.urandom(15)).decode().rstrip("=")
        subprocess.run(
            [f"{HOME}/bin/kafka-storage.sh", "format", "-t", cluster, "-c", file], env=self._environment(), check=True, timeout=120,
            stdout=subprocess.DEVNULL)
        return self._run()

    def _environment(self) -> dict[str, str]:
        environment = os.environ | {
            "LOG_DIR": str(self._directory / "logs"), "KAFKA_HEAP_OPTS": "-Xmx768m -Xms256m",
            # It lives for minutes: what it would compile better pays back later.
            "KAFKA_JVM_PERFORMANCE_OPTS": "-server -XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
        environment.pop("KAFKA_OPTS", None)
        return environment

    def _run(self) -> "Kafka":
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [f"{HOME}/bin/kafka-server-start.sh", self._directory / "server.properties"], env=self._environment(),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self._answers, 120, lambda: (self._directory / "log").read_text()[-3000:])
        return self

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def kill(self) -> None:
        """As when its machine is gone. What it has stays."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def start_again(self) -> None:
        self._run()

    def _settings(self) -> dict[str, object]:
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self._ports.items())
        reauthenticated = int(SIGNED_IN_FOR * 1000)
        rights = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS"} if self._has_rights else {}
        return rights | self._certificate() | {
            "process.roles": "broker,controller", "node.id": 1, "log.dirs": self._directory / "data",
            "controller.quorum.voters": f"1@127.0.0.1:{self._ports['CONTROLLER']}", "controller.listener.names": "CONTROLLER",
            "listeners": listeners, "advertised.listeners": listeners.rpartition(",")[0], "inter.broker.listener.name": "OPEN",
            "listener.security.protocol.map": "OPEN:PLAINTEXT,CONTROLLER:PLAINTEXT," + ",".join(
                f"{name}:{self.protocol}" for name in self._DOORS),
            "offsets.topic.replication.factor": 1, "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1, "auto.create.topics.enable": "false", "num.partitions": 12,
            "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.scram.scram-sha-512.sasl.jaas.config":
                "org.apache.kafka.common.security.scram.ScramLoginModule required;",
            "listener.name.scram.scram-sha-512.connections.max.reauth.ms": reauthenticated,
            "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.plain.plain.sasl.jaas.config":
                f'org.apache.kafka.common.security.plain.PlainLoginModule required user_plain="{self._plain}";',
            "listener.name.plain.plain.connections.max.reauth.ms": reauthenticated,
            # Takes tokens that nobody has signed: whoever runs it for real names what checks them.
            "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.token.oauthbearer.sasl.jaas.config":
                'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required '
                'unsecuredLoginStringClaim_sub="broker";',
            "listener.name.token.oauthbearer.connections.max.reauth.ms": reauthenticated}

    def _certificate(self) -> dict[str, object]:
        """One file has the key and the certificate."""
        if self.authority is None:
            return {}
        certificate, key = self.authority.issue("127.0.0.1")
        store = self._directory / "broker.pem"
        store.write_text(key.read_text() + certificate.read_text())
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": store}

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, (self._directory / "log").read_text()[-3000:]
        try:
            return bool(AdminClient({"bootstrap.servers": self.servers, "log_level": 0}).list_topics(timeout=2).brokers)
        except KafkaException:
            return False

    # Who may come in

    def open(self) -> Broker:
        return Broker(self.servers)

    def scram(self, user: str, password: Path) -> Listener:
        return Listener(self, self._ports["SCRAM"], {
            "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512", "KAFKA_SASL_USERNAME": user, "KAFKA_SASL_PASSWORD_FILE": str(password)})

    def user(self, name: str, password: Path) -> Listener:
        """A new one, by SCRAM. The password is put into the file."""
        password.write_text(f"{kafka_password()}\n")
        self.set_password(name, password.read_text().strip())
        return self.scram(name, password)

    def plain(self, password: Path) -> Listener:
        """As the one user of PLAIN. The password is put into the file, and stays: the broker reads it at its start."""
        password.write_text(f"{self._plain}\n")
        return Listener(self, self._ports["PLAIN"], {
            "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "plain", "KAFKA_SASL_PASSWORD_FILE": str(password)})

    def tokens(self, file: Path) -> Listener:
        return Listener(self, self._ports["TOKEN"], {
            "KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_OAUTHBEARER_TOKEN_FILE": str(file)})

    def set_password(self, user: str, password: str) -> None:
        """From now on this is the user's only one, for connections that sign in."""
        change = UserScramCredentialUpsertion(
            user, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), password.encode())
        admin = AdminClient({"bootstrap.servers": self.servers})
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(30)


def unsigned(name: str, seconds: float) -> str:
    """A token for `Kafka.tokens`."""
    now = time.time()
    claims = json.dumps({"sub": name, "iat": now, "exp": now + seconds})
    return f"{KAFKA_TOKEN_HEADER}.{base64.urlsafe_b64encode(claims.encode()).decode().rstrip('=')}."
