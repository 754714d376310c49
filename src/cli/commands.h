/* NAME, function suffix, one-line help.  In the order of --help. */
/* clang-format off */
SZ_COMMAND("serve",       serve,       "run the gateway")
SZ_COMMAND("healthcheck", healthcheck, "ask a running gateway whether it is ready")
SZ_COMMAND("check",       check,       "read a configuration and print every mistake")
SZ_COMMAND("config",      config,      "print the effective configuration, its schema or its reference")
SZ_COMMAND("token",       token,       "mint a token, or look into one")
SZ_COMMAND("revoke",      revoke,      "tell a running gateway what to refuse from now on")
SZ_COMMAND("fga",         fga,         "test, validate and ask authorization models")
SZ_COMMAND("audit",       audit,       "read, follow and verify the audit journal")
SZ_COMMAND("explain",     explain,     "judge one request and print what every stage says")
SZ_COMMAND("key",         key,         "make a new secret or signing key")
SZ_COMMAND("version",     version,     "print the version")
/* clang-format on */
#undef SZ_COMMAND
