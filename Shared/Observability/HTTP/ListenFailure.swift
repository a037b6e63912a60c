// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NIOCore

/// An HTTP server cannot take its address: another process has it, or it is none of this machine's.
public struct ListenFailure: Error, CustomStringConvertible {
    public let description: String

    /// - Parameter variable: the setting that names the port.
    package init(_ error: IOError, host: String, port: Int, variable: String) {
        let shown = host.contains(":") ? "[\(host)]" : host
        let reason = String(cString: strerror(error.errnoCode)).lowercased()
        description = "\(variable): \(shown):\(port) cannot be listened on: \(reason); choose another address or port"
    }
}
