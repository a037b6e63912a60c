// SPDX-License-Identifier: Apache-2.0

import Apps
public import Contracts

/// Where a page of a long answer ends: at a time, and among those of one time at an id.
public struct PageEnd: Sendable, Hashable {
    /// In milliseconds since 1970.
    public var time: Int64
    public var id: String

    public init(time: Int64, id: String) {
        self.time = time
        self.id = id
    }

    /// The newest first, and those of one time by their ids.
    public func isBefore(_ other: PageEnd) -> Bool { time == other.time ? id < other.id : time > other.time }
}

/// The texts that lead from one page of an answer to the next. They are encrypted under the store's salt and the question,
/// so they tell nothing, and lead nowhere with another question.
public struct Paging: Sendable {
    private static let purpose = "page"

    private let secrets: DerivedSecrets
    private let question: [String]

    /// - Parameters:
    ///   - context: of the decision.
    ///   - question: what is read: the type of the question, and whose answer it is.
    public init(_ context: DecisionContext, _ question: [String]) {
        secrets = context.secrets
        self.question = [context.app.id.text] + question
    }

    /// What to ask the next page with.
    public func next(_ end: PageEnd) -> String? {
        secrets.closed(Array("\(end.time):\(end.id)".utf8), Self.purpose, question).map(Base64.url)
    }

    /// Where the page before ended; `nil` for the first.
    /// - Throws: `INVALID_REQUEST` when the text was not given for this question.
    public func end(_ after: String?) throws(Rejection) -> PageEnd? {
        guard let after else { return nil }
        guard let end = read(after) else {
            throw Rejection(
                .invalidRequest, "data.after is not the next of an answer to this question; leave it out to begin anew."
            )
        }
        return end
    }

    private func read(_ text: String) -> PageEnd? {
        guard let bytes = Base64.bytes(text.utf8, .url),
            let plain = secrets.opened(bytes, Self.purpose, question),
            let parts = String(validating: plain, as: UTF8.self)?.split(separator: ":", maxSplits: 1), parts.count == 2,
            let time = Int64(parts[0])
        else { return nil }
        return PageEnd(time: time, id: String(parts[1]))
    }
}
