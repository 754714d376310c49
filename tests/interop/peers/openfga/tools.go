//go:build tools

// Pins the openfga program: script/peers builds the package imported here.
package peers

import _ "github.com/openfga/openfga/cmd/openfga"
