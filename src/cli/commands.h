/* NAME, function suffix, one-line help.  In the order of --help. */
/* clang-format off */
SZ_COMMAND("version",     version,     "print the version and the libraries")
/* clang-format on */
#undef SZ_COMMAND
