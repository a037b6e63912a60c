// SPDX-License-Identifier: Apache-2.0

/// The names of OpenTelemetry's semantic conventions that spans and metrics have here, and no others. Many of them are not
/// stable yet: 1.45 renamed what Kafka's had been called before. So they stand here alone, with the version that they are of.
package enum SemanticNames {
    package static let schema = "https://opentelemetry.io/schemas/1.45.0"

    // MARK: HTTP

    package static let httpMethod = "http.request.method"
    package static let httpRoute = "http.route"
    package static let httpStatus = "http.response.status_code"
    package static let scheme = "url.scheme"
    package static let otherMethod = "_OTHER"
    package static let requestDuration = "http.server.request.duration"

    // MARK: Messages

    package static let system = "messaging.system.name"
    package static let kafka = "kafka"
    package static let operation = "messaging.operation.name"
    package static let operationType = "messaging.operation.type"
    package static let send = "send"
    package static let process = "process"
    package static let poll = "poll"
    package static let destination = "messaging.destination.name"
    /// In the place of a name that somebody else has chosen.
    package static let destinationTemplate = "messaging.destination.template"
    package static let partition = "messaging.destination.partition.id"
    package static let group = "messaging.consumer.group.name"
    package static let batchCount = "messaging.batch.message_count"
    package static let messageID = "messaging.message.id"
    package static let offset = "kafka.offset"
    package static let eventType = "cloudevents.event_type"
    package static let sentMessages = "messaging.client.sent.messages"
    package static let consumedMessages = "messaging.client.consumed.messages"
    package static let operationDuration = "messaging.client.operation.duration"
    package static let processDuration = "messaging.process.duration"

    // MARK: Anything

    package static let errorType = "error.type"
    package static let otherError = "_OTHER"
    static let service = "service.name"
    static let version = "service.version"
    static let instance = "service.instance.id"
    static let sdk = "telemetry.sdk.name"
    static let sdkLanguage = "telemetry.sdk.language"
    static let sdkVersion = "telemetry.sdk.version"
    static let exception = "exception"
    static let exceptionType = "exception.type"

    // MARK: Our own

    package static let app = "identitybus.app"
    package static let outcome = "identitybus.outcome"
    package static let reason = "identitybus.reason"
}
