//go:build tools

// Pins the official SDK by the program that uses it: script/peers builds the package imported here.
package peers

import _ "subzero.invalid/peers/fga-sdk/client"
