// SPDX-License-Identifier: Apache-2.0

import CLibFuzzer
import Foundation

/// What scripts/fuzz runs: libFuzzer with the target that `FUZZ_TARGET` names. It starts itself again, with its own
/// arguments, so the name is none of them.
@main struct Main {
    private static let target = ProcessInfo.processInfo.environment["FUZZ_TARGET"].flatMap(FuzzTarget.init(rawValue:))

    static func main() {
        guard target != nil else { return print(FuzzTarget.allCases.map(\.rawValue).joined(separator: "\n")) }
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        exit(
            LLVMFuzzerRunDriver(&count, &arguments) { data, size in
                Main.run(Array(UnsafeBufferPointer(start: data, count: size)))
                return 0
            })
    }

    private static func run(_ input: [UInt8]) {
        do {
            try target?.run(input)
        } catch {
            fatalError("\(error)")
        }
    }
}
