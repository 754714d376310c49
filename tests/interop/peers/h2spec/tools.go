//go:build tools

// Pins the h2spec program: script/peers builds the package imported here.
package peers

import _ "github.com/summerwind/h2spec/cmd/h2spec"
