// SPDX-License-Identifier: Apache-2.0

import Runtime
import Verification

@main
struct VerificationMain {
    static func main() {
        ServiceMain.run(VerificationService())
    }
}
