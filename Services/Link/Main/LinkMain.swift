// SPDX-License-Identifier: Apache-2.0

import Link
import Runtime

@main
struct LinkMain {
    static func main() {
        ServiceMain.run(LinkService())
    }
}
