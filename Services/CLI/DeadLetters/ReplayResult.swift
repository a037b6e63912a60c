// SPDX-License-Identifier: Apache-2.0

import Contracts
import WireJSON

/// What became of one letter.
struct ReplayResult {
    enum End: Hashable {
        /// Sent, and answered so.
        case answered(LetterHandling.Answer)
        /// Sent, and there was no answer in time.
        case unanswered
        /// Somebody else has done it: what was answered; `nil` of what was dismissed.
        case others(LetterHandling.Answer?)
        /// Somebody else has sent it, or an earlier run, and there is no answer yet.
        case stillUnanswered
        /// Still open: somebody else has it in hand.
        case held
        /// Still open, behind another letter of its key.
        case behind(LetterID)
        /// Still open.
        case left(reason: String)
        /// Still open, as was wished: it would not succeed.
        case spared(reason: String)
    }

    var letter: Letter
    var end: End
    /// In words.
    var why: String?
    var place: RecordPost.Place?

    /// Why it is still open; `nil` when it is not.
    var cause: String? {
        switch end {
        case .answered, .unanswered, .others, .stillUnanswered: nil
        case .held: "IN_HAND"
        case .behind: "BEHIND"
        case .left(let cause), .spared(let cause): cause
        }
    }

    var json: JSONValue {
        func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
        var (state, status, reason): (String, String?, String?) = ("replayed", nil, nil)
        switch end {
        case .answered(let answer): (status, reason) = (answer.status, answer.reason)
        case .unanswered: status = "unanswered"
        case .others(let answer): (state, status, reason) = ("handled by others", answer?.status, answer?.reason)
        case .stillUnanswered: (state, status) = ("handled by others", "unanswered")
        case .held, .behind, .left, .spared: (state, reason) = ("open", cause)
        }
        var object: JSONObject = [
            "letter": .string(letter.id.description), "id": text(letter.attributes?.id), "key": text(letter.key),
            "state": .string(state), "status": text(status), "reason": text(reason), "message": text(why),
        ]
        if let place {
            object["topic"] = .string(place.partition.topic)
            object["partition"] = .number(JSONNumber(place.partition.partition))
            object["offset"] = .number(JSONNumber(place.offset))
        }
        return .object(object)
    }
}
