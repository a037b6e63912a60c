// SPDX-License-Identifier: Apache-2.0

import Contracts

/// Where replies may be sent. An app that has a reply topic of its own gets the answers to its API keys there and
/// nowhere else; nobody else may name it. Replies hold authentication codes and tokens, and a topic is all that Kafka
/// keeps apart.
struct ReplyRule: Sendable {
    private let topics: Topics
    /// By topic, with prefix: the app that has it.
    private let owners: [String: String]

    init(topics: Topics, apps: AppDirectory) {
        self.topics = topics
        owners = Dictionary(
            apps.replyTopics.map { (topics.prefix + $0.key, $0.value) }, uniquingKeysWith: { first, _ in first })
    }

    /// Directs the reply of a command whose sender is known. The gateway and the services have topics of their own.
    /// - Returns: why the command is refused; the refusal is directed already.
    func direct(_ attributes: inout EventAttributes, _ app: AppSettings, _ principal: Principal) -> Rejection? {
        guard principal.kind != .service, !attributes.source.hasPrefix(Topics.ownSources) else { return nil }
        let named = attributes.replyTo.map { topics.replyTopic($0) }
        guard let own = app.replies else {
            guard case .some(.some(let topic)) = named, owners[topic] != nil || topics.isOwn(replyTopic: topic) else {
                return nil
            }
            attributes.replyTo = nil
            return Rejection(.invalidRequest, "replyto is not a topic that this app may have answers sent to.")
        }
        let isOther = named.map { $0 != topics.prefix + own } ?? false
        attributes.replyTo = topics.prefix + own
        return isOther
            ? Rejection(.invalidRequest, "replyto is not \(own), which this app's answers are sent to; leave it away.")
            : nil
    }

    /// Directs the answer to somebody who is not known. Who names another app's topic is answered on the common one.
    func directUnknown(_ attributes: inout EventAttributes) {
        guard !owners.isEmpty, let appID = attributes.appID else { return }
        if attributes.replyTo == nil, !attributes.source.hasPrefix(Topics.ownSources) {
            attributes.replyTo = owners.first { $0.value == appID }?.key
        } else if let owner = topics.replyTopic(attributes.replyTo).flatMap({ owners[$0] }), owner != appID {
            attributes.replyTo = nil
        }
    }
}
