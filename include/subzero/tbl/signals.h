/*
 * KIND(name, weight, full, half-life, sticks to, help): what speaks against an address, a token or a subject.
 * A signal contributes weight x min(1, amount / full) to the score; the amount halves every half-life (seconds).
 *   COUNTED   the amount is how often it happened
 *   DISTINCT  the amount is how many different things were seen (tokens, paths, networks): repeating one adds nothing
 * docs/threat.md is checked against this table.
 */
/* clang-format off */
#ifndef SZ_COUNTED
#define SZ_COUNTED(name, weight, full, half_life, on, help)
#endif
#ifndef SZ_DISTINCT
#define SZ_DISTINCT(name, weight, full, half_life, on, help)
#endif
SZ_COUNTED(failed_auth,       0.30f,  40, 300, ADDRESS, "requests refused for their token")
SZ_COUNTED(malformed,         0.55f,  30, 120, ADDRESS, "requests that no sound client sends")
SZ_COUNTED(automation,        0.25f,   4, 600, ADDRESS, "refused requests whose user agent names an attack tool")
SZ_COUNTED(disposable_signup, 0.45f,   2, 86400, EITHER, "told by the provider: a signup from a disposable domain")
SZ_COUNTED(mfa_push,          0.75f,   6, 900, EITHER, "told by the provider: push messages for a second factor, not answered")
SZ_COUNTED(login_velocity,    0.55f,  10, 900, EITHER, "told by the provider: logins faster, or from farther apart, than a person's")
SZ_DISTINCT(bad_tokens,       0.62f,  12, 300, ADDRESS, "different tokens that nobody has signed, beyond the good ones of the same address")
SZ_DISTINCT(scanning,         0.75f,  20, 300, ADDRESS, "different first segments of paths that no route has")
SZ_DISTINCT(algorithms,       0.75f,   4, 300, ADDRESS, "different token headers with an algorithm that is not allowed")
SZ_DISTINCT(neighbours,       0.20f,   8, 300, NETWORK, "other addresses of the same /24 or /48 that misbehave; counts only beside own evidence")
SZ_DISTINCT(replay,           0.75f,  16, 300, TOKEN,   "different networks that one token came from")
/* clang-format on */
#undef SZ_COUNTED
#undef SZ_DISTINCT
