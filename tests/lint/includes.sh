#!/usr/bin/env bash
# The layer table, enforced: who may include whom, and each library only in its one place.
# The table itself, with its reasons, is in docs/architecture.md.
. "$(dirname "$0")/lib.sh"

if [ "${1:-}" = --self-test ]; then
  for f in include/subzero/base.h src/base/words.h src/conf/schema.h cache/l1.h fga/jwt.h src/pipeline/txn.h src/edge/tls.h; do
    plant $f </dev/null
  done
  plant include/subzero/bad.h <<<$'#include <stdint.h>\n#include <jansson.h>'
  plant src/base/up.c <<<$'#include "base/words.h"\n#include "conf/schema.h"'
  plant src/guard/tool.c <<<$'#include "subzero/base.h"\n#include "cache/l1.h"\n#include <h2o.h>'
  plant src/loop/loop_h2o.c <<<$'#include <h2o.h>\n#include <h2o/http1.h>'
  plant cache/l1.c <<<$'#include "l1.h"\n#include "fga/jwt.h"\n#include <curl/curl.h>'
  plant fga/jwt.c <<<$'#include "fga/jwt.h"\n#include <openssl/evp.h>\n#include <hiredis/hiredis.h>\n#include <jwt.h>'
  plant src/pipeline/run.c <<<$'#include "pipeline/txn.h"\n#include "cache/l1.h"\n#include "edge/tls.h"'
  plant src/edge/h2o.c <<<$'#include <h2o.h>\n#include "pipeline/txn.h"\n#include "fga/jwt.h"\n#include "edge/gone.h"'
  plant src/cli/odd.c <<<$'#include "edge/tls.h"\n#include <gtk.h>'
  self_test "$0" include/subzero/bad.h:2: src/base/up.c:2: src/guard/tool.c:2: src/guard/tool.c:3: cache/l1.c:2: \
    cache/l1.c:3: fga/jwt.c:3: fga/jwt.c:4: src/pipeline/run.c:2: src/pipeline/run.c:3: src/edge/h2o.c:3: \
    src/edge/h2o.c:4: src/cli/odd.c:2:
  exit
fi

mapfile -t sources < <(files 'include/*.h' 'src/*.c' 'src/*.h' 'cache/*.c' 'cache/*.h' 'fga/*.c' 'fga/*.h')
{ files '*.h' && code "${sources[@]}" | grep -E ':[ ]*#[ ]*include'; } | awk '
BEGIN {
    # Folder, and the folders whose headers it may include besides its own and include/subzero.
    may["include/subzero"] = ""
    may["src/base"]     = ""
    may["src/guard"]    = "src/base"
    may["src/obs"]      = "src/base"
    may["src/conf"]     = "src/base"
    may["src/loop"]     = "src/base"
    may["cache"]        = "src/base src/guard src/obs src/conf src/loop"
    may["fga"]          = "src/base src/guard src/obs src/conf src/loop"
    may["src/pipeline"] = ""
    may["src/edge"]     = "src/pipeline src/cli"
    may["src/cli"]      = "src/pipeline src/edge"
    may["src"]          = "src/pipeline src/edge src/cli"

    # Library headers, and the files that may include them.
    where["^h2o(/|\\.h$)"]   = "^src/edge/|^src/loop/[a-z0-9_]*_h2o\\.[ch]$"
    where["^hiredis/"]       = "^cache/redis[a-z0-9_]*\\.[ch]$"
    where["^curl/"]          = "^fga/http[a-z0-9_]*\\.[ch]$"
    where["^jansson\\.h$"]   = "^src/conf/|^src/obs/|^src/cli/|^src/edge/|^cache/|^fga/"
    where["^jwt\\.h$"]       = "^fga/sign[a-z0-9_]*\\.[ch]$"
    where["^openssl/"]       = "^src/base/|^src/edge/|^src/loop/[a-z0-9_]*_h2o\\.[ch]$|^cache/redis_tls[a-z0-9_]*\\.[ch]$|^fga/[a-z0-9_]*\\.[ch]$"
    where["^sodium\\.h$"]    = "^src/base/|^cache/seal[a-z0-9_]*\\.[ch]$|^fga/[a-z0-9_]*\\.[ch]$"
    where["^yaml\\.h$"]      = "^src/conf/|^fga/"

    c = "assert ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic " \
        "stdbool stddef stdint stdio stdlib stdnoreturn string time uchar wchar wctype"
    posix = "arpa/inet dirent fcntl fnmatch glob grp net/if netdb netinet/in netinet/tcp poll pthread pwd sched spawn semaphore " \
        "strings sys/mman sys/resource sys/select sys/socket sys/stat sys/time sys/types sys/uio sys/un sys/utsname " \
        "sys/wait syslog termios unistd getopt"
    linux = "sys/epoll sys/eventfd sys/inotify sys/prctl sys/random sys/signalfd sys/sysinfo sys/timerfd sys/auxv " \
        "dlfcn linux/capability linux/futex linux/tcp linux/version sys/capability sys/syscall sys/ioctl sys/file immintrin execinfo malloc sys/param sys/statvfs"
    split(c " " posix, list, " ")
    for (i in list) portable[list[i] ".h"] = 1
    split(linux, list, " ")
    for (i in list) platform[list[i] ".h"] = 1
}

function dir(path) { return path ~ /\// ? substr(path, 1, match(path, /\/[^\/]*$/) - 1) : "." }

# The layer folder of a path: the longest row of the table that is a prefix.
function layer(path,   row, best) {
    for (row in may)
        if (index(path, row "/") == 1 && length(row) > length(best)) best = row
    return best
}

function find(from, name,   at) {
    if (exists[at = dir(from) "/" name] || exists[at = "src/" name] || exists[at = "include/" name] || exists[at = name])
        return at
    return ""
}

# First the names of all headers, then the include lines.
!/:/ { exists[$0] = 1; next }
{
    split($0, part, ":")
    file = part[1]
    place = part[1] ":" part[2] ":"
    mine = layer(file)
    if (match($0, /"[^"]*"/)) {
        name = substr($0, RSTART + 1, RLENGTH - 2)
        target = find(file, name)
        if (target == "") { print place, "\"" name "\" is not in the tree"; next }
        theirs = layer(target)
        if (theirs != mine && theirs != "include/subzero" && index(" " may[mine] " ", " " theirs " ") == 0)
            print place, mine, "must not include", target ": go through include/subzero"
        next
    }
    if (!match($0, /<[^>]*>/)) next
    name = substr($0, RSTART + 1, RLENGTH - 2)
    if (portable[name]) next
    if (mine == "include/subzero") { print place, "<" name ">: contracts use C and POSIX headers alone"; next }
    if (platform[name]) next
    for (library in where)
        if (name ~ library) {
            if (file !~ where[library]) print place, "<" name "> has one place, and this is not it: " where[library]
            next
        }
    print place, "<" name "> is not a header that this project knows: add it to tests/lint/includes.sh with its place"
}' | verdict includes
