// SPDX-License-Identifier: Apache-2.0

import Yams

/// What is wrong with a file that is no YAML, and what to do, in words for people. libyaml's own are for its programmers, and
/// an error of Yams quotes the line, which may hold a secret: of the text itself, one character is told at most.
enum YAMLWords {
    /// - Parameter text: what was read.
    static func problem(_ error: YamlError, in text: String) -> AppsFile.Problem {
        switch error {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            let place = AppsFile.Position(line: mark.line, column: mark.column)
            return at(place, words(problem, context, character(at: place, of: text)))
        case .reader:
            guard let (scalar, place) = unreadable(in: text) else { return other }
            let code = String(scalar.value, radix: 16, uppercase: true)
            let name = "U+" + String(repeating: "0", count: max(0, 4 - code.count)) + code
            return at(place, "the character \(name), which text does not have; is it an apps file? Write it without")
        case .duplicatedKeysInMapping(let names, let context):
            var problem = AppsFile.Problem(
                "has \(names.joined(separator: ", ")) twice in one mapping, first in line "
                    + "\(context.mark.line), column \(context.mark.column); keep one")
            problem.position = AppsFile.Position(context.mark)
            return problem
        default: return other
        }
    }

    private static var other: AppsFile.Problem { AppsFile.Problem("is not YAML") }

    private static func at(_ place: AppsFile.Position, _ words: String) -> AppsFile.Problem {
        var problem = AppsFile.Problem("is not YAML: line \(place.line), column \(place.column): \(words)")
        problem.position = place
        return problem
    }

    private static func words(_ problem: String, _ context: YamlError.Context?, _ character: Unicode.Scalar?) -> String
    {
        let began = context.map { "line \($0.mark.line), column \($0.mark.column)" } ?? "a line before"
        switch problem {
        case "found character that cannot start any token": return beginning(character)
        case _ where problem.contains("tab character"): return tab
        case "mapping values are not allowed in this context":
            return
                "a colon where no name may stand; put a value with a colon in quotes, and begin all members of a mapping "
                + "in one column"
        case "did not find expected key":
            return
                "this stands neither under nor beside the mapping that begins in \(began); begin all its members in one "
                + "column, and end what is open before"
        case "did not find expected '-' indicator":
            return "this is no element of the list that begins in \(began); begin each with - in one column"
        case "did not find expected ',' or ']'":
            return
                "the list that [ begins in \(began) goes on without a comma, or has no end; write , between elements and "
                + "] behind the last"
        case "did not find expected ',' or '}'":
            return
                "the mapping that { begins in \(began) goes on without a comma, or has no end; write , between members "
                + "and } behind the last"
        case "could not find expected ':'":
            return "the name in \(began) has no colon behind it; write name: value"
        case "found unexpected end of stream" where context?.text.contains("quoted") == true:
            return "the quotation that begins in \(began) has no end; write the same mark behind it"
        case "did not find expected node content":
            return "a value is missing here; write it, or take away what waits for it"
        case "found unknown escape character":
            return "in double quotes \\ begins an escape, and this is none; write \\\\, or use single quotes"
        case "found undefined alias":
            return "an alias of nothing: its anchor (&) does not stand before it; write the anchor first"
        case "but found another document": return "a second document begins here; a file has one, so take away ---"
        case "did not find expected <document start>":
            return "this follows on a whole document; all stands in one mapping that begins with apps:"
        case _ where problem.hasPrefix("Maximum nesting level"): return "this is nested too deeply; take brackets away"
        default: return "from here on it cannot be read; look at this line and the one before, and put values in quotes"
        }
    }

    private static let tab = "a tab; YAML is indented with spaces only"

    private static func beginning(_ character: Unicode.Scalar?) -> String {
        switch character {
        case "\t": tab
        case "@", "`", "%", "|", ">", "&", "*", "!":
            "no value may begin with \(character.map { "\($0)" } ?? ""); put it in quotes"
        default: "no value may begin with this; put it in quotes"
        }
    }

    private static func character(at place: AppsFile.Position, of text: String) -> Unicode.Scalar? {
        first(in: text) { $1 == place }?.0
    }

    /// The first character that YAML does not have, and where it is.
    private static func unreadable(in text: String) -> (Unicode.Scalar, AppsFile.Position)? {
        first(in: text) { scalar, _ in
            switch scalar.value {
            case 0x09, 0x0A, 0x0D, 0x20...0x7E, 0x85, 0xA0...0xD7FF, 0xE000...0xFFFD, 0x10000...0x10FFFF: false
            default: true
            }
        }
    }

    /// Places are counted as libyaml does: from 1, in scalars.
    private static func first(
        in text: String, where isMeant: (Unicode.Scalar, AppsFile.Position) -> Bool
    ) -> (Unicode.Scalar, AppsFile.Position)? {
        var place = AppsFile.Position(line: 1, column: 1)
        for scalar in text.unicodeScalars {
            if isMeant(scalar, place) { return (scalar, place) }
            place =
                scalar == "\n"
                ? AppsFile.Position(line: place.line + 1, column: 1)
                : AppsFile.Position(line: place.line, column: place.column + 1)
        }
        return nil
    }
}
