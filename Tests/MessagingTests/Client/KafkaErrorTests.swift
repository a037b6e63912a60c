// SPDX-License-Identifier: Apache-2.0
// Part of IdentityBus. See LICENSE for the full text.

import Messaging
import Testing

@Suite struct KafkaErrorTests {
    @Test(arguments: [
        KafkaError.Code.messageTooLarge, KafkaError.Code.unknownTopic, KafkaError.Code.unknownTopicOrPartition,
        KafkaError.Code.topicAuthorizationFailed, KafkaError.Code.invalidMessage, KafkaError.Code.unknownPartition,
    ])
    func hopelessErrorsArePermanent(code: Int32) {
        let error = KafkaError(code: code)
        #expect(error.disposition == .permanent)
        #expect(!error.isRetriable)
        #expect(!error.isFatal)
    }

    @Test(arguments: [
        KafkaError.Code.transport, KafkaError.Code.timedOut, KafkaError.Code.queueFull, KafkaError.Code.notLeader,
        KafkaError.Code.notEnoughReplicas, KafkaError.Code.rebalanceInProgress, 12_345,
    ])
    func allOthersAreRetried(code: Int32) {
        #expect(KafkaError(code: code).disposition == .retry)
    }

    @Test func fatalIsStrongerThanPermanent() {
        #expect(KafkaError(code: KafkaError.Code.messageTooLarge, isFatal: true).disposition == .fatal)
        #expect(KafkaError(code: KafkaError.Code.fatal).disposition == .fatal)
    }

    @Test func theDescriptionNamesTheCode() {
        #expect(KafkaError(code: KafkaError.Code.transport, message: "gone").description == "_TRANSPORT: gone")
        #expect(KafkaError(code: KafkaError.Code.messageTooLarge).name == "MSG_SIZE_TOO_LARGE")
    }
}
