//go:build tools

// Pins the oauth2-proxy program: script/peers builds the package imported here.
package peers

import _ "github.com/oauth2-proxy/oauth2-proxy/v7"
