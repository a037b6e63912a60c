// SPDX-License-Identifier: Apache-2.0

import Observability

extension PrometheusRegistry.Configuration {
    /// The metrics of the services and the gateway. What they mean in full stands in docs/operations.md.
    static var identityBus: PrometheusRegistry.Configuration {
        var configuration = PrometheusRegistry.Configuration()
        configuration.help = texts.merging(conventions) { ours, _ in ours }
        // Up to the largest BATCH_SIZE.
        configuration.bucketsByName["identity_batch_size"] = [
            1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000,
        ]
        for name in conventions.keys where name.hasSuffix("_seconds") {
            configuration.bucketsByName[name] = conventionsBuckets
        }
        // Two intervals of librdkafka's statistics, five of the looks at the ends, and many of what the loop tells by itself.
        for name in texts.keys where name.hasPrefix("kafka_") { configuration.maxAge[name] = .seconds(11) }
        configuration.maxAge["identity_oldest_undecided_seconds"] = .seconds(11)
        configuration.maxAge["identity_dead_letters"] = .seconds(20)
        configuration.maxAge["identity_open_dead_letters"] = .seconds(20)
        configuration.maxAge["identity_oldest_dead_letter_seconds"] = .seconds(20)
        configuration.maxAge["identity_api_key_expires_timestamp_seconds"] = .seconds(60)
        return configuration
    }

    /// As OpenTelemetry's conventions give them.
    private static let conventionsBuckets = [
        0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
    ]

    private static let conventions: [String: String] = [
        "http_server_request_duration_seconds": "From a request's arrival to its answer.",
        "messaging_client_sent_messages_total": "Messages that Kafka has taken or refused.",
        "messaging_client_operation_duration_seconds": "From handing a message over to Kafka's answer.",
        "messaging_client_consumed_messages_total": "Records that Kafka has given out.",
        "messaging_process_duration_seconds": "The time of the batch that a record was decided in, for each record.",
    ]

    private static let texts: [String: String] = [
        "identity_ready": "1 while /readyz is 200.",
        "identity_check_ok": "0 while that check of /readyz fails and the log has said so.",
        "identity_commands_total": "Commands by outcome.",
        "identity_app_commands_total": "Records by app.",
        "identity_app_seconds_total": "Each app's part of the time of the batches.",
        "identity_batch_size": "Commands per transaction.",
        "identity_batch_duration_seconds": "Deciding and committing a batch.",
        "identity_outbox_pending": "Messages handed to Kafka and not yet acknowledged.",
        "identity_conflicts_total": "Batches decided again, because another replica changed or locked the same rows.",
        "identity_fenced_total": "How often the replica learned that it no longer owns a partition.",
        "identity_database_waits_total": "How often it had to wait for the database.",
        "identity_log_gap_records_total": "Records that Kafka removed before they were read.",
        "identity_person_reads_total": "Questions about people that were answered.",
        "identity_late_links_total":
            "Link requests refused because they are older than the turn of whoever is on the install.",
        "identity_ignored_values_total": "Device identities ignored because they name nobody.",
        "identity_replies_given_up_total": "Replies that became dead letters because their topic refused them.",
        "identity_expired_total": "What went because nobody had used it for the days that the app's `retention` names.",
        "identity_forwards_asked_again_total": "Commands to other services sent once more because no answer had come.",
        "identity_oldest_undecided_seconds": "How long the oldest record has waited that is not decided yet.",
        "identity_dead_letters": "Records in the service's dead letter topic.",
        "identity_open_dead_letters": "Those of them that nobody has sent again or dismissed.",
        "identity_oldest_dead_letter_seconds": "How long the oldest open one has been there; 0 for none.",
        "identity_apps_file_valid": "1 while the apps file as it is now is in force.",
        "identity_api_key_expires_timestamp_seconds": "When an app's key ends, in seconds since 1970.",
        "verification_session_lag_seconds":
            "From the sync service's change of a device's user to the moment at which the verification service has read of it.",
        "kafka_consumer_lag": "Records behind the position that the store has committed.",
        "kafka_consumer_rebalances_total": "Rebalances of the consumer's group.",
        "kafka_consumer_rebalance_seconds": "How long the rebalance has lasted that the group is in; 0 for none.",
        "kafka_broker_round_trip_seconds": "Percentiles of the last interval, from a request to its answer.",
        "kafka_client_queued_messages": "Produced messages that wait for delivery.",
        "kafka_client_reply_queue": "Events that wait for the client's owner.",
        "gateway_requests_total": "Requests by route and status.",
        "gateway_tls_certificate_expires_timestamp_seconds": "When the certificate of the gateway ends.",
        "gateway_request_duration_seconds": "From a request's arrival to its answer.",
        "gateway_requests_in_flight": "Requests that wait for a reply.",
        "gateway_replies_read_total": "Records read from the reply topic.",
        "gateway_reply_timeouts_total": "Requests that a service did not answer in time.",
        "gateway_throttled_total": "Requests refused by a limit.",
        "gateway_unauthorized_total": "Requests refused for their credential.",
        "process_spans_sent_total": "Spans that the OpenTelemetry collector has taken.",
        "process_spans_dropped_total": "Spans that it was not told of.",
        "process_connections_given_up_total": "Connections closed to make room for others.",
        "gateway_full_total": "Requests refused because too many wait for that service.",
    ]
}

extension HealthCheck {
    /// What the check `apps` says.
    package static func refusedApps(_ problem: String) -> String {
        "apps file refused; the previous version stays in force: \(problem)"
    }
}
