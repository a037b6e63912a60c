// SPDX-License-Identifier: Apache-2.0
//
// The floor under every service that reads Kafka, keeps what it decided and answers: the same bytes moved by the
// libraries' own calls, and nothing decided. One thread. scripts/bench compiles and runs it.
//
//     floor loop --store none|FILE|postgresql://… --topic T --out T --events-out T --partitions N --count N
//                --batch N --reply BYTES --event BYTES --events PER_COMMAND
//     floor rows --store FILE|postgresql://… --batch N --reply BYTES --event BYTES --events PER_COMMAND
//
// loop reads N records of a topic from its beginning. Of each batch it stores a row for every record, in one transaction,
// and produces a reply and some events for each. rows stores such rows alone, for about two seconds. Both print how many
// they did in a second, and the seconds of CPU for 1,000. A row is a random key of 16 bytes and the bytes of the messages;
// PostgreSQL gets all rows of a batch in one statement (unnest), SQLite one prepared statement for each. Commits wait for
// the disk. Kafka clients are set as the services set theirs; KAFKA_BOOTSTRAP_SERVERS says where it is.

#include <librdkafka/rdkafka.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static const char *store = "none", *topic = "", *out = "", *events_out = "";
static long partitions = 12, count = 0, batch = 1000, reply = 500, event = 500;
static double events = 0;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "floor: %s: %s\n", what, why ? why : "failed");
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void tell(long done, double seconds) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("%.1f %.6f\n", done / seconds, cpu * 1000 / done);
}

static unsigned long random_state = 42;
static unsigned long next_random(void) {
    unsigned long mixed = random_state += 0x9E3779B97F4A7C15UL;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9UL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBUL;
    return mixed ^ (mixed >> 31);
}

// The store

static sqlite3 *file;
static sqlite3_stmt *insert;
static PGconn *server;
static char *row_bytes, *keys_array, *rows_array;
static long row_size;

static void sqlite_run(const char *sql) {
    if (sqlite3_exec(file, sql, NULL, NULL, NULL) != SQLITE_OK) fail(sql, sqlite3_errmsg(file));
}

static void pg_run(const char *sql) {
    PGresult *result = PQexec(server, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) fail(sql, PQerrorMessage(server));
    PQclear(result);
}

static void open_store(void) {
    row_size = reply + (long)(event * events);
    row_bytes = malloc(row_size + 1);
    // Bytes that compress as little as signatures do.
    for (long i = 0; i < row_size; i++) row_bytes[i] = 'a' + next_random() % 26;
    if (!strcmp(store, "none")) return;
    if (strncmp(store, "postgresql:", 11)) {
        if (sqlite3_open(store, &file) != SQLITE_OK) fail(store, sqlite3_errmsg(file));
        sqlite_run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 16384;"
                   "PRAGMA cache_size = -32768; DROP TABLE IF EXISTS floor;"
                   "CREATE TABLE floor (key BLOB NOT NULL PRIMARY KEY, row BLOB NOT NULL)");
        if (sqlite3_prepare_v2(file, "INSERT INTO floor VALUES (?, ?)", -1, &insert, NULL) != SQLITE_OK)
            fail("insert", sqlite3_errmsg(file));
        return;
    }
    server = PQconnectdb(store);
    if (PQstatus(server) != CONNECTION_OK) fail("PostgreSQL", PQerrorMessage(server));
    pg_run("SET client_min_messages TO error");
    pg_run("DROP TABLE IF EXISTS floor");
    pg_run("CREATE TABLE floor (key bytea NOT NULL PRIMARY KEY, row bytea NOT NULL)");
    PGresult *result = PQprepare(server, "insert", "INSERT INTO floor SELECT * FROM unnest($1::bytea[], $2::bytea[])",
                                 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) fail("insert", PQerrorMessage(server));
    PQclear(result);
    keys_array = malloc(64 + batch * 20);
    rows_array = malloc(64 + batch * (row_size + 4));
}

static void close_store(void) {
    if (server) pg_run("DROP TABLE floor");
}

static char *put(char *at, int value) {
    value = htonl(value);
    memcpy(at, &value, 4);
    return at + 4;
}

// PostgreSQL's binary form of an array of bytea: dimensions, no nulls, type, length, lower bound, elements.
static char *array_head(char *at, long rows) { return put(put(put(put(put(at, 1), 0), 17), rows), 1); }

static void store_rows(long rows) {
    if (file) {
        sqlite_run("BEGIN IMMEDIATE");
        for (long i = 0; i < rows; i++) {
            unsigned long key[2] = {next_random(), next_random()};
            sqlite3_bind_blob(insert, 1, key, 16, SQLITE_STATIC);
            sqlite3_bind_blob(insert, 2, row_bytes, row_size, SQLITE_STATIC);
            if (sqlite3_step(insert) != SQLITE_DONE) fail("insert", sqlite3_errmsg(file));
            sqlite3_reset(insert);
        }
        sqlite_run("COMMIT");
    } else if (server) {
        char *keys = array_head(keys_array, rows), *values = array_head(rows_array, rows);
        for (long i = 0; i < rows; i++) {
            unsigned long key[2] = {next_random(), next_random()};
            keys = put(keys, 16);
            memcpy(keys, key, 16);
            keys += 16;
            values = put(values, row_size);
            memcpy(values, row_bytes, row_size);
            values += row_size;
        }
        const char *parameters[2] = {keys_array, rows_array};
        int lengths[2] = {keys - keys_array, values - rows_array}, formats[2] = {1, 1};
        PGresult *result = PQexecPrepared(server, "insert", 2, parameters, lengths, formats, 1);
        if (PQresultStatus(result) != PGRES_COMMAND_OK) fail("insert", PQerrorMessage(server));
        PQclear(result);
    }
}

static void rows(void) {
    open_store();
    store_rows(batch);
    double start = now();
    long done = 0;
    while (now() - start < 2) {
        store_rows(batch);
        done += batch;
    }
    tell(done, now() - start);
    close_store();
}

// Kafka

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) fail(name, why);
}

static rd_kafka_conf_t *configuration(void) {
    const char *servers = getenv("KAFKA_BOOTSTRAP_SERVERS");
    if (!servers) fail("KAFKA_BOOTSTRAP_SERVERS", "is not set");
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", servers);
    set(conf, "socket.nagle.disable", "true");
    return conf;
}

static long outstanding = 0;
static void delivered(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    if (message->err) fail("produce", rd_kafka_err2str(message->err));
    outstanding--;
}

static void produce(rd_kafka_t *producer, const char *name, const rd_kafka_message_t *input, long size) {
    for (;;) {
        rd_kafka_resp_err_t error = rd_kafka_producev(
            producer, RD_KAFKA_V_TOPIC(name), RD_KAFKA_V_KEY(input->key, input->key_len),
            RD_KAFKA_V_VALUE(row_bytes, size), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (!error) break;
        if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) fail("produce", rd_kafka_err2str(error));
        rd_kafka_poll(producer, 10);
    }
    outstanding++;
}

static void loop(void) {
    char why[256];
    open_store();
    rd_kafka_conf_t *conf = configuration();
    set(conf, "enable.idempotence", "true");
    set(conf, "compression.type", "lz4");
    set(conf, "linger.ms", "0");
    set(conf, "batch.size", "1000000");
    set(conf, "partitioner", "murmur2_random");
    set(conf, "queue.buffering.max.messages", "200000");
    const char *in_flight = getenv("KAFKA_PRODUCER_MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION");
    if (in_flight) set(conf, "max.in.flight.requests.per.connection", in_flight);
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (!producer) fail("producer", why);
    conf = configuration();
    set(conf, "group.id", "floor");
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "queued.min.messages", "10000");
    set(conf, "queued.max.messages.kbytes", "16384");
    rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (!consumer) fail("consumer", why);
    rd_kafka_poll_set_consumer(consumer);
    rd_kafka_topic_partition_list_t *assignment = rd_kafka_topic_partition_list_new(partitions);
    for (long i = 0; i < partitions; i++)
        rd_kafka_topic_partition_list_add(assignment, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    if (rd_kafka_assign(consumer, assignment)) fail("assign", topic);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(consumer);
    rd_kafka_message_t **messages = malloc(batch * sizeof *messages);
    double start = 0, owed = 0;
    long done = 0;
    while (done < count) {
        ssize_t read = rd_kafka_consume_batch_queue(queue, 100, messages, batch);
        if (read < 0) fail("consume", rd_kafka_err2str(rd_kafka_last_error()));
        // Connecting is not part of it.
        if (done == 0 && read > 0) start = now();
        if (read > 0) store_rows(read);
        for (ssize_t i = 0; i < read; i++) {
            if (messages[i]->err) fail("consume", rd_kafka_message_errstr(messages[i]));
            produce(producer, out, messages[i], reply);
            for (owed += events; owed >= 1; owed--) produce(producer, events_out, messages[i], event);
            rd_kafka_message_destroy(messages[i]);
            done++;
        }
        rd_kafka_poll(producer, 0);
    }
    while (outstanding > 0) rd_kafka_poll(producer, 100);
    tell(done, now() - start);
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(consumer);
    close_store();
}

int main(int arguments, char **argument) {
    if (arguments < 2) fail("usage", "floor loop|rows --store …");
    for (int i = 2; i < arguments; i++) {
        const char *name = argument[i];
        if (i + 1 >= arguments) fail(name, "lacks a value");
        const char *value = argument[++i];
        if (!strcmp(name, "--store")) store = value;
        else if (!strcmp(name, "--topic")) topic = value;
        else if (!strcmp(name, "--out")) out = value;
        else if (!strcmp(name, "--events-out")) events_out = value;
        else if (!strcmp(name, "--partitions")) partitions = atol(value);
        else if (!strcmp(name, "--count")) count = atol(value);
        else if (!strcmp(name, "--batch")) batch = atol(value);
        else if (!strcmp(name, "--reply")) reply = atol(value);
        else if (!strcmp(name, "--event")) event = atol(value);
        else if (!strcmp(name, "--events")) events = atof(value);
        else fail(name, "is no option");
    }
    if (!strcmp(argument[1], "loop")) loop();
    else if (!strcmp(argument[1], "rows")) rows();
    else fail(argument[1], "is neither loop nor rows");
    return 0;
}
