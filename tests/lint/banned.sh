#!/usr/bin/env bash
# Calls and words that do not belong in the tree, each with its remedy.
. "$(dirname "$0")/lib.sh"

if [ "${1:-}" = --self-test ]; then
  plant docs/real.md </dev/null
  plant cache/a.c <<'C'
/* strcpy(), time(NULL) and printf() in a comment are no calls; docs/real.md exists */
static const char *text = "sprintf(";
void f(char *d, const char *s) { strcpy(d, s); }
void g(char *d, const char *s) { sz_strcpy(d, s); my.sprintf_like(d); }
int h(const char *s) { return atoi(s); }
long t(void) { return time(NULL) + run_time(2); }
int m(const void *a, const void *b) { return memcmp(a, b, 16); }
void p(void) { printf("x"); }
/* see docs/gone.md */
C
  plant src/base/clock.c <<<'int now(void) { return clock_gettime(0, 0); }'
  plant src/cli/say.c <<<'void say(void) { printf("x"); fprintf(stderr, "y"); }'
  plant src/guard/b.c <<<'int n(void) { return sz_mono_read().us; }'
  plant script/x <<<"# TO""DO: later"
  plant tests/lint/memcmp.allow <<<'cache/b.c 3'
  self_test "$0" 'cache/a.c:3: strcpy' 'cache/a.c:5: atoi' 'cache/a.c:6: time' 'cache/a.c: 1 raw memcmp' \
    'cache/b.c: 0 raw memcmp' 'cache/a.c:8: printf' 'cache/a.c:9: docs/gone.md' 'src/guard/b.c:1: sz_mono_read' 'script/x:1:'
  exit
fi

mapfile -t product < <(files 'include/*.h' 'src/*.c' 'src/*.h' 'cache/*.c' 'cache/*.h' 'fga/*.c' 'fga/*.h')
mapfile -t everything < <(files '*.c' '*.h')
blanked=$(code "${product[@]}")

# calls NAMES REMEDY [EXCEPT]: lines of the product that call one of NAMES, outside the files that match EXCEPT.
calls() {
  grep -E "(^|[^A-Za-z0-9_.>])($1)[ ]*\(" <<<"$blanked" | { [ -z "${3:-}" ] && cat || grep -Ev "^($3)"; } |
    awk -F: -v names="$1" -v remedy="$2" '{
      rest = substr($0, length($1) + length($2) + 3)
      match(rest, "(^|[^A-Za-z0-9_.>])(" names ")[ ]*[(]")
      call = substr(rest, RSTART, RLENGTH)
      gsub(/[^A-Za-z0-9_]/, "", call)
      print $1 ":" $2 ": " call "(): " remedy }' || true
}

{
  code "${everything[@]}" | grep -E "(^|[^A-Za-z0-9_.>])(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atoll|atof|alloca)[ ]*\(" |
    awk -F: '{
      match($0, /(strcpy|strcat|v?sprintf|gets|strtok|ato[ilf]+|alloca)[ ]*\(/)
      print $1 ":" $2 ": " substr($0, RSTART, RLENGTH - 1) "(): unbounded or unchecked; use slices, snprintf, sz_buf, sz_parse_u64" }' || true

  calls 'clock_gettime|gettimeofday|time|clock|ftime' 'only src/base/clock.c and src/loop read a clock; take `now` as an argument' \
    'src/base/clock\.c:|src/loop/|src/edge/overrides\.c:' # defines one, for h2o
  calls 'sz_mono_read|sz_wall_read' 'a module is handed its `now`' \
    'include/|src/base/|src/loop/|src/obs/|src/edge/|src/cli/'
  calls 'printf|vprintf|puts|putchar|perror|fprintf|vfprintf|fputs' 'only src/cli talks to the terminal; use sz_log, or give the caller a message' \
    'src/cli/|src/main\.c:|src/base/(panic|secret)\.c:' # the last words of a process that aborts
  calls 'sleep|usleep|nanosleep|system|popen|getaddrinfo|gethostbyname' 'blocks a loop: use a timer, or a thread with a bounded queue' \
    'src/base/thread[a-z_]*\.c:|src/edge/resolve[a-z_]*\.c:|src/loop/resolver\.c:|src/cli/'

  # Comparisons of secrets take constant time (sz_secret_eq).  Whether bytes are secret no script can tell, so each
  # raw memcmp is counted: a new one is looked at by a person, who then raises the number.
  awk -F: -v allow=tests/lint/memcmp.allow '
    BEGIN { while ((getline line < allow) > 0) if (split(line, part, " ") == 2) { wanted[part[1]] = part[2]; seen[part[1]] += 0 } }
    { rest = substr($0, length($1) + length($2) + 3); seen[$1] += gsub(/(^|[^A-Za-z0-9_])memcmp[ ]*\(/, "", rest) }
    END { for (f in seen) if (seen[f] != wanted[f] + 0)
        printf "%s: %d raw memcmp() where %d are known: sz_eq for public bytes, sz_secret_eq for secrets; else pin it in %s\n", f, seen[f], wanted[f], allow }
  ' <<<"$blanked" | sort

  mapfile -t texts < <(files '*' | grep -vE '^(tests/lint/banned\.sh$|tests/interop/peers/|perf/results/|tests/fuzz/corpus/)')
  grep -nIE 'TO''DO|FIX''ME|XX''X[^X]' "${texts[@]}" /dev/null | grep -v 'mkd\?s\?temp\|XX''XXXX' |
    sed 's/^\([^:]*:[0-9]*\):.*/\1: unfinished work is an issue, not a comment/' || true

  # A document that is pointed at exists: its path from the root, from the file, or its bare name somewhere.
  grep -noIE '[A-Za-z0-9_./-]+\.md\b' "${texts[@]}" /dev/null | while IFS=: read -r file line name; do
    case $name in http* | *//*) continue ;; esac
    [ -e "$name" ] || [ -e "$(dirname "$file")/$name" ] || [ -e "docs/$name" ] || echo "$file:$line: $name is not in the tree"
  done
} | verdict banned
