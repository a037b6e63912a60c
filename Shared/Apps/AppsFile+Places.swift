// SPDX-License-Identifier: Apache-2.0

import Yams

extension AppsFile {
    /// One step on the way from the top of the file down to a value.
    enum Step: Hashable, Sendable {
        case member(String)
        case element(Int)
    }

    /// A mapping of the file: the way to it, and its name in a problem's text.
    struct Place: Sendable, CustomStringConvertible {
        var steps: [Step]
        /// Such as `app demo, sync`.
        var words: String

        var description: String { words }

        func inside(_ member: String) -> Place {
            Place(steps: steps + [.member(member)], words: "\(words), \(member)")
        }

        /// - Parameter name: what an element of a list is called.
        func inside(_ list: String, _ index: Int, _ name: String) -> Place {
            Place(steps: self[list, index], words: "\(words), \(name)")
        }

        /// The way to a member.
        subscript(_ member: String) -> [Step] { steps + [.member(member)] }

        /// The way to an element of a list.
        subscript(_ list: String, _ index: Int) -> [Step] { steps + [.member(list), .element(index)] }
    }

    /// A place as people and YAML tools write it: `apps[0].keys[1]`.
    static func path(_ steps: [Step]) -> String {
        let text = steps.map { step in
            switch step {
            case .member(let name): ".\(name)"
            case .element(let index): "[\(index)]"
            }
        }
        return steps.isEmpty ? "the file" : String(text.joined().trimmingPrefix("."))
    }

    /// Where a problem is in the text, counted from 1.
    struct Position: Hashable, Sendable {
        var line: Int
        var column: Int

        init(line: Int, column: Int) { (self.line, self.column) = (line, column) }

        init?(_ mark: Mark?) {
            guard let mark else { return nil }
            self.init(line: mark.line, column: mark.column)
        }
    }

    public struct Problem: Error, Sendable, CustomStringConvertible {
        public var description: String
        /// The way to what is wrong; empty: the whole file. Where it is missing, the way to where it should be.
        var steps: [Step] = []
        /// Whether a member is wrong because of its name.
        var isAboutName = false
        /// The text without the place, where that is the first so many of the ``steps``.
        var shape: (text: String, count: Int)?
        /// Of a file that is no YAML, where it stops being that.
        var position: Position?

        public init(_ description: String) { self.description = description }

        init(_ description: String, at steps: [Step], isAboutName: Bool = false) {
            self.description = description
            self.steps = steps
            self.isAboutName = isAboutName
        }

        /// A problem of the file's shape.
        /// - Parameter whole: the steps that the text names.
        init(shape text: String, of whole: [Step], at steps: [Step]? = nil, isAboutName: Bool = false) {
            self.init("\(AppsFile.path(whole)): \(text)", at: steps ?? whole, isAboutName: isAboutName)
            shape = (text, whole.count)
        }
    }

    /// The end of a sentence about a name that nobody knows: those that are known, and first the one that was meant.
    static func known(_ names: [String], for name: String) -> String {
        "\(guess(names, for: name)); known are \(names.joined(separator: ", "))"
    }

    static func guess(_ names: [String], for name: String) -> String {
        nearest(to: name, in: names).map { " (did you mean \($0)?)" } ?? ""
    }

    // MARK: Errors of the decoder

    static func steps(_ path: [any CodingKey]) -> [Step] {
        path.map { key in key.intValue.map { .element($0) } ?? .member(key.stringValue) }
    }

    /// What is wrong with the file, of what decoding it throws.
    static func explain(_ error: any Error) -> Problem {
        switch error {
        case let problem as Problem: return problem
        case DecodingError.keyNotFound(let key, let context):
            let whole = steps(context.codingPath)
            return Problem(
                shape: "\(key.stringValue) is missing", of: whole, at: whole + [.member(key.stringValue)])
        case DecodingError.typeMismatch(let type, let context), DecodingError.valueNotFound(let type, let context):
            return Problem(
                shape: "has a value of another kind than expected\(kind(type))", of: steps(context.codingPath))
        case DecodingError.dataCorrupted(let context):
            if let problem = context.underlyingError as? Problem { return problem }
            return Problem(shape: context.debugDescription, of: steps(context.codingPath))
        default: return Problem("cannot be read as YAML")
        }
    }

    /// What the decoder wanted, where people can write that.
    private static func kind(_ type: any Any.Type) -> String {
        switch type {
        case is Bool.Type: ": true or false is wanted"
        case is Int64.Type, is Int.Type: ": a whole number is wanted"
        case is String.Type, is Node.Scalar.Type: ": one value is wanted, and no list or mapping"
        case is Node.Sequence.Type, is [Any].Type: ": a list is wanted"
        case is Node.Mapping.Type, is [String: Any].Type: ": a mapping with members is wanted"
        default: ""
        }
    }
}
