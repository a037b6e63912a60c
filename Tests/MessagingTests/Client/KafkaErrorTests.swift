// SPDX-License-Identifier: Apache-2.0

import Messaging
import Testing

@Suite struct KafkaErrorTests {
    /// A cluster that is restarted broker by broker says of topics that it has that it does not know them.
    @Test(arguments: [
        KafkaError.Code.unknownTopic, KafkaError.Code.unknownTopicOrPartition, KafkaError.Code.unknownPartition,
        KafkaError.Code.topicAuthorizationFailed, KafkaError.Code.policyViolation,
    ])
    func aTopicMayAcceptLaterWhatItRefusesNow(code: Int32) {
        #expect(KafkaError(code: code).disposition == .refused)
    }

    @Test(arguments: [
        KafkaError.Code.messageTooLarge, KafkaError.Code.recordListTooLarge, KafkaError.Code.invalidMessage,
        KafkaError.Code.invalidRecord,
    ])
    func someMessagesAreNeverAccepted(code: Int32) {
        #expect(KafkaError(code: code).disposition == .unacceptable)
    }

    /// librdkafka has no end of retries, so whatever it reports as an error it has given up.
    @Test(arguments: [
        KafkaError.Code.transport, KafkaError.Code.timedOut, KafkaError.Code.notLeader,
        KafkaError.Code.notEnoughReplicas, KafkaError.Code.rebalanceInProgress, -1, 12_345,
    ])
    func allOthersMeanThatTheMessageWasGivenUp(code: Int32) {
        #expect(KafkaError(code: code).disposition == .failed)
    }

    @Test func onlyTheOwnQueueIsWaitedFor() {
        #expect(KafkaError(code: KafkaError.Code.queueFull).disposition == .retry)
    }

    @Test func fatalIsStrongest() {
        #expect(KafkaError(code: KafkaError.Code.messageTooLarge, isFatal: true).disposition == .fatal)
        #expect(KafkaError(code: KafkaError.Code.queueFull, isFatal: true).disposition == .fatal)
        #expect(KafkaError(code: KafkaError.Code.fatal).disposition == .fatal)
    }

    @Test func theDescriptionNamesTheCode() {
        #expect(KafkaError(code: KafkaError.Code.transport, message: "gone").description == "_TRANSPORT: gone")
        #expect(KafkaError(code: KafkaError.Code.messageTooLarge).name == "MSG_SIZE_TOO_LARGE")
    }
}
