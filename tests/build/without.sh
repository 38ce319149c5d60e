#!/bin/sh
# SPDX-License-Identifier: MIT
# The build without protobuf-c (-Dtensorboard=disabled): what takes the place of the event files compiles, needs no generated header,
# defines the same functions, and says what is missing. `meson setup DIR -Dtensorboard=disabled` builds all of it.
. "$(dirname "$0")/common.sh"
include="-I$root/core/include -I$root/io/include"

# shellcheck disable=SC2086
for source in events_none event_files; do
    $cc -D_GNU_SOURCE -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Werror $include -c "$root/io/$source.c" -o "$tmp/$source.o" ||
        { wrong "io/$source.c does not compile by itself"; finish; }
done
nm -g --defined-only "$tmp/events_none.o" | awk 'NF == 3 { print $3 }' | sort >"$tmp/none"
sed -n 's/^WF_API .*[ *]\(wf_[a-z_]*\)(.*/\1/p' "$root/io/include/weft/events.h" | sort >"$tmp/declared"
[ -s "$tmp/declared" ] || wrong 'no function was found in weft/events.h'
diff -u "$tmp/declared" "$tmp/none" >&2 || wrong 'io/events_none.c does not define what weft/events.h declares'
if nm -u "$tmp/events_none.o" "$tmp/event_files.o" | grep -i 'protobuf\|wf__' >&2; then
    wrong 'protobuf-c is needed all the same'
fi

cat >"$tmp/program.c" <<'END'
#include <stdarg.h>
#include <stdio.h>
#include <weft/events.h>
wf_status wf_error_set(wf_error *error, wf_status code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    return code;
}
int main(void)
{
    wf_error error = {0};
    wf_events *events = wf_events_open("run", 0, &error);
    printf("%d %d %s\n", wf_events_available(), events != NULL, error.message);
    wf_events_close(events);
    return 0;
}
END
# shellcheck disable=SC2086
$cc -std=gnu11 $include "$tmp/program.c" "$tmp/events_none.o" -o "$tmp/program"
output=$("$tmp/program")
case $output in
'0 0 run: '*'built without protobuf-c'*) ;;
*) wrong "it says: $output" ;;
esac
finish
