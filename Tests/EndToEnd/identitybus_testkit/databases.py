# SPDX-License-Identifier: Apache-2.0
"""The stores under the services, and looking into them from outside."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, Sequence
from urllib.parse import urlsplit, urlunsplit

import psycopg

from .places import binary, clean_environment, postgres_script
from .ports import free_port
from .secrets import DATABASE_PASSWORD
from .waiting import until

Row = tuple[Any, ...]


def _as_owner(program: str, *arguments: str) -> None:
    """Runs one of PostgreSQL's programs as who owns its data."""
    programs = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), key=lambda path: int(path.parts[-3]))
    owner = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    command = [*owner, str(programs[-1]) if programs else program, *arguments]
    subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL)


def _start(data: Path, port: int) -> None:
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_prepared_transactions=2"
    _as_owner("pg_ctl", "-D", str(data), "-l", str(data.parent / "server.log"), "-w", "-o", options, "start")


def _kill(data: Path, port: int) -> None:
    """As when its machine is gone: no process is told (kill -9 of all), and nothing of them is left but the files."""
    pid_file = data / "postmaster.pid"
    # The number of its piece of shared memory stands in the seventh line.
    lines = pid_file.read_text().splitlines()
    server, segment = int(lines[0]), lines[6].split()[1]
    os.kill(server, signal.SIGSTOP)  # it begins no other meanwhile
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    for number in [server, *map(int, children)]:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    until(lambda: not _listens(port), 20, "PostgreSQL's end")
    subprocess.run(["ipcrm", "-m", segment], check=False, stderr=subprocess.DEVNULL)
    pid_file.unlink()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Database(Protocol):
    def environment(self) -> dict[str, str]: ...
    def execute(self, sql: str, parameters: Sequence[Any] = (), service: str = "link") -> list[Row]:
        """Runs one statement with `?` parameters. Change data only while the service is stopped."""
        ...


class SQLite:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def environment(self) -> dict[str, str]:
        return {"DATA_DIR": str(self.directory)}

    def execute(self, sql: str, parameters: Sequence[Any] = (), service: str = "link") -> list[Row]:
        with closing(sqlite3.connect(self.directory / f"{service}.sqlite", timeout=10)) as connection, connection:
            return connection.execute(sql, parameters).fetchall()


class PostgreSQL:
    def __init__(self, url: str) -> None:
        self.url = url

    def environment(self) -> dict[str, str]:
        """With a password, so that there is one that could leak."""
        parts = urlsplit(self.url)
        if parts.password is None:
            place = parts.netloc.rpartition("@")[2]
            parts = parts._replace(netloc=f"{parts.username or 'postgres'}:{DATABASE_PASSWORD}@{place}")
        return {"DATABASE_URL": urlunsplit(parts)}

    def execute(self, sql: str, parameters: Sequence[Any] = (), service: str = "link") -> list[Row]:
        with psycopg.connect(self.url, options=f"-c search_path=identity_{service}") as connection:
            cursor = connection.execute(sql.replace("?", "%s"), parameters)
            return cursor.fetchall() if cursor.description else []


def make_role(url: str, name: str) -> None:
    """A role that may do nothing yet, unless it is there."""
    with psycopg.connect(url, autocommit=True) as connection:
        try:
            connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{DATABASE_PASSWORD}'")  # type: ignore[arg-type]
        except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            pass


def with_role(url: str, name: str) -> str:
    """The URL of somebody else."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{name}:{DATABASE_PASSWORD}@{parts.netloc.rpartition('@')[2]}"))


def least_rights(service: str, environment: dict[str, str]) -> dict[str, str]:
    """With TEST_DATABASE_ROLES=least: the environment of a service that works with a role of its own, after the owner has
    migrated its schema and given it the rights of a service. Where the server is away, or a test looks at a store that
    is not migrated, as the owner."""
    url = environment.get("DATABASE_URL", "")
    if os.environ.get("TEST_DATABASE_ROLES") != "least" or urlsplit(url).username != "postgres":
        return environment
    if environment.get("MIGRATE") == "never":
        return environment
    role = f"e2e_{service}"
    try:
        make_role(url, role)
    except psycopg.OperationalError:
        return environment
    answer = subprocess.run(
        [binary("identitybus"), "migrate", "--service", service, "--grant", f"{service}={role}"],
        env=clean_environment() | environment, capture_output=True, text=True, timeout=60)
    assert answer.returncode in (0, 78), answer
    with psycopg.connect(url, autocommit=True) as connection:
        for sql in _more_rights(connection, f"identity_{service}", role, answer.returncode == 0):
            connection.execute(sql)  # type: ignore[arg-type]
    return environment | {"DATABASE_URL": with_role(url, role)}


def _more_rights(connection: psycopg.Connection[Row], schema: str, role: str, is_migrated: bool) -> list[str]:
    """A store of another version is for the service to refuse, not for the tool. Who looks whether a disk is full that
    holds other tables than usual has to be allowed to use it."""
    known = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchall()
    rights = [] if is_migrated or not known else [
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        f"GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA {schema} TO {role}"]
    [(space,)] = connection.execute("SHOW default_tablespace").fetchall()
    return rights + ([f"GRANT CREATE ON TABLESPACE {space} TO {role}"] if space else [])


class PostgresServer:
    """A PostgreSQL server: the one of $TEST_DATABASE_URL, or a throw-away one."""

    def __init__(self, url: str, directory: Path | None) -> None:
        self.url = url
        self._directory = directory
        self._made: list[str] = []

    @classmethod
    def for_tests(cls, directory: Path) -> "PostgresServer":
        url = os.environ.get("TEST_DATABASE_URL")
        return cls(url, None) if url else cls.throwaway(directory)

    @classmethod
    def throwaway(cls, directory: Path) -> "PostgresServer":
        # Not under the tests' folders: the server may run as another user, who may not look into them.
        answer = subprocess.run(
            [postgres_script(), "start", directory], check=True, capture_output=True, text=True)
        return cls(answer.stdout.strip(), directory)

    def close(self) -> None:
        if self._directory is not None:
            subprocess.run([postgres_script(), "stop", self._directory], check=True)
            return
        with psycopg.connect(self.url, autocommit=True) as connection:
            for name in self._made:
                connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')  # type: ignore[arg-type]

    def new_database(self) -> PostgreSQL:
        name = f"e2e_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[arg-type]
        self._made.append(name)
        return PostgreSQL(urlunsplit(urlsplit(self.url)._replace(path=f"/{name}")))

    # Outages; only of a server of our own.

    def crash(self) -> None:
        """Ends the server as `immediate` does: connections break, nothing is tidied up."""
        pid_file = self._data / "postmaster.pid"
        pid = int(pid_file.read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        until(lambda: not Path(f"/proc/{pid}").exists() or not pid_file.exists(), 20, "PostgreSQL's end")

    def kill(self) -> None:
        _kill(self._data, urlsplit(self.url).port or 5432)

    def wait_for_standbys(self, which: str) -> None:
        """`*`: a commit is done when one that follows has it too. Empty: none is waited for."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{which}'")  # type: ignore[arg-type]
            connection.execute("SELECT pg_reload_conf()")
            states = "SELECT sync_state FROM pg_stat_replication"
            wanted = [[("sync",)]] if which else [[], [("async",)]]
            until(lambda: connection.execute(states).fetchall() in wanted, 20, "the server to know")

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Every process of the server stands still; connections stay."""
        server = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        for number in [server, *map(int, children)]:
            os.kill(number, signal.SIGSTOP)
        try:
            yield
        finally:
            for number in [*map(int, children), server]:
                os.kill(number, signal.SIGCONT)

    def start_again(self) -> None:
        _start(self._data, urlsplit(self.url).port or 5432)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Crashed, and started again whatever happens meanwhile: others use the server after this test."""
        self.crash()
        try:
            yield
        finally:
            self.start_again()

    def number_transactions_from(self, number: int) -> None:
        """Restarts it as if so many transactions had been."""
        _as_owner("pg_ctl", "-D", str(self._data), "-m", "fast", "-w", "stop")
        _as_owner("pg_resetwal", "-x", str(number), "-D", str(self._data))
        # Where the states of 2^20 transactions stand.
        states = self._data / "pg_xact" / f"{number >> 20:04X}"
        if not states.exists():
            states.write_bytes(bytes(1 << 18))
            shutil.chown(states, (self._data / "PG_VERSION").owner())
        self.start_again()

    def standby(self, directory: Path) -> "Standby":
        """Another server that follows this one."""
        return Standby(directory, free_port(), lambda data: _copy(self.url, data))

    @property
    def _data(self) -> Path:
        assert self._directory is not None, "only a throw-away server can be stopped"
        return self._directory / "data"


def _copy(url: str, data: Path) -> None:
    _as_owner("pg_basebackup", "-D", str(data), "-R", "-X", "stream", "-d", url)


class Standby:
    """A server that follows another one, until it takes its place. `make` makes its data."""

    def __init__(self, directory: Path, port: int, make: Callable[[Path], object]) -> None:
        directory.mkdir(parents=True)
        if os.getuid() == 0:
            shutil.chown(directory, "postgres")
        self._data, self._port = directory / "data", port
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        make(self._data)
        _start(self._data, port)

    def both(self, primary: PostgresServer) -> PostgreSQL:
        """What services are told: both servers, of which they take the one that takes writes."""
        parts = urlsplit(primary.url)
        place = f"{parts.netloc},{urlsplit(self.url).netloc.rpartition('@')[2]}"
        return PostgreSQL(urlunsplit(parts._replace(netloc=place, query="target_session_attrs=read-write")))

    def ask(self, sql: str) -> list[Row]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def stop_following(self) -> None:
        self.ask("ALTER SYSTEM SET primary_conninfo = ''")
        self.ask("SELECT pg_reload_conf()")
        until(lambda: not self.ask("SELECT 1 FROM pg_stat_wal_receiver"), 20, "the end of the replication")

    def promote(self) -> None:
        [(is_promoted,)] = self.ask("SELECT pg_promote(true, 60)")
        assert is_promoted

    def stop(self) -> None:
        _as_owner("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    def kill(self) -> None:
        _kill(self._data, self._port)

    def close(self) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop()
