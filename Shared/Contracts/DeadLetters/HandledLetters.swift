// SPDX-License-Identifier: Apache-2.0

/// What was done about the dead letters of one service. Follows from the records on its actions topic alone, in their order
/// and with their times, so that it is the same on every machine.
package struct HandledLetters: Sendable {
    /// For how long a claim holds, in milliseconds between the times of two records. Whoever has claimed a letter sends it
    /// well before, or not at all.
    package static let lease: Int64 = 10_000

    package struct State: Sendable {
        /// Who has it in hand. Of a letter that is open.
        package fileprivate(set) var claim: LetterHandling?
        /// What it is not open any more for: ``LetterHandling/Act/sent`` or ``LetterHandling/Act/dismissed``. The first one
        /// counts.
        package fileprivate(set) var closing: LetterHandling?
        /// What was answered when it was sent.
        package fileprivate(set) var answer: LetterHandling?
        /// When the claim was made under which it was sent, or is in hand.
        package fileprivate(set) var claimedAt: Int64?
        /// An earlier claim ran out and was never taken back: the letter may have been sent all the same.
        package fileprivate(set) var inDoubt: LetterHandling?
        /// The digests of the records that those who have claimed it were about to send.
        package fileprivate(set) var digests: Set<String> = []

        package init() {}

        package var isOpen: Bool { closing == nil }
    }

    package private(set) var states: [LetterPlace: State] = [:]

    package init() {}

    package subscript(_ letter: LetterPlace) -> State { states[letter] ?? State() }

    /// The letters that are not open.
    package var closed: some Sequence<LetterPlace> { states.lazy.filter { !$0.value.isOpen }.map(\.key) }

    /// Takes the next record.
    package mutating func take(_ handling: LetterHandling) {
        var state = self[handling.letter]
        switch handling.act {
        case .claimed:
            Self.claim(&state, handling)
            state.claimedAt = state.claim?.time ?? state.claimedAt
        case .released:
            if state.claim?.run == handling.run { state.claim = nil }
        case .sent:
            // It is a fact, whoever had it in hand.
            if state.isOpen, handling.answer != nil { state.answer = handling }
            state.closing = state.closing ?? handling
            state.claim = nil
        case .answered:
            if state.closing?.act == .sent { state.answer = state.answer ?? handling }
        case .dismissed:
            guard state.isOpen, Self.mayTake(state, handling) else { break }
            state.closing = handling
            state.claim = nil
        }
        states[handling.letter] = state
    }

    /// A claim that its writer has dated is none: it could hold for ever.
    private static func claim(_ state: inout State, _ handling: LetterHandling) {
        guard state.isOpen, handling.isDated, mayTake(state, handling) else { return }
        if let claim = state.claim, claim.run != handling.run { state.inDoubt = state.inDoubt ?? claim }
        state.claim = handling
        if let digest = handling.digest { state.digests.insert(digest) }
    }

    private static func mayTake(_ state: State, _ handling: LetterHandling) -> Bool {
        guard let claim = state.claim, claim.run != handling.run else { return true }
        return isOver(claim, at: handling.time)
    }

    /// Whether a claim holds no more at this time, in milliseconds since 1970.
    package static func isOver(_ claim: LetterHandling, at time: Int64) -> Bool { time - claim.time >= lease }
}
