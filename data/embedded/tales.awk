# SPDX-License-Identifier: MIT
# Writes tales by the rules in tales.rules, the same ones each time: awk -f tales.awk tales.rules > tales.txt
BEGIN { seed = 20; tales = 300; width = 76 }

/^#/ || /^$/ { next }
/^[a-z_]+:/ { name = $0; sub(/:.*/, "", name); sub(/^[a-z_]+:/, "") }
{
    n = split($0, part, "|")
    for (i = 1; i <= n; i++) {
        gsub(/^ +| +$/, "", part[i])
        if (part[i] != "")
            choice[name, ++count[name]] = part[i]
    }
}

function fail(message) { print "tales.awk: " message >"/dev/stderr"; failed = 1; exit 1 }

# Park and Miller's generator. Numbers of awk are doubles; the products stay below 2^53, so they are exact, and every awk draws the same.
function random(n) { seed = seed * 16807 % 2147483647; return 1 + seed % n }

# Deals a rule's choices like cards: every choice is used once before any choice is used again.
function deal(name,    i, swap) {
    if (!count[name])
        fail("no rule is called " name)
    if (!left[name])
        left[name] = count[name]
    do {
        i = random(left[name])
    } while (choice[name, i] == last[name] && left[name] == count[name] && count[name] > 1)
    swap = choice[name, i]
    choice[name, i] = choice[name, left[name]]
    choice[name, left[name]--] = swap
    return last[name] = swap
}

# Replaces <rule> by one of the rule's choices. <x=rule> binds a choice to x and prints nothing. <X> is x with a capital letter.
function expand(text,    out, tag, low, at) {
    while (match(text, /<[^<>]*>/)) {
        out = out substr(text, 1, RSTART - 1)
        tag = substr(text, RSTART + 1, RLENGTH - 2)
        text = substr(text, RSTART + RLENGTH)
        if (at = index(tag, "=")) {
            low = substr(tag, at + 1)
            bound[substr(tag, 1, at - 1)] = low in count ? expand(deal(low)) : low
            continue
        }
        low = tolower(tag)
        low = low in bound ? bound[low] : expand(deal(low))
        out = out (tag ~ /^[A-Z]/ ? toupper(substr(low, 1, 1)) substr(low, 2) : low)
    }
    return out text
}

function line_of(text,    line, at, tries) {
    do {
        line = expand(text)
        while (match(line, /(^|[ "])[Aa] ([aeiouAEIOU]|honest)/)) {
            at = RSTART + (substr(line, RSTART, 1) !~ /[Aa]/)
            line = substr(line, 1, at) "n" substr(line, at + 1)
        }
        at = 1 + (line ~ /^"/)
        line = substr(line, 1, at - 1) toupper(substr(line, at, 1)) substr(line, at + 1)
        if (++tries > 50)
            fail("longer than " width " characters: " line)
    } while (length(line) > width)
    return line
}

END {
    if (failed)
        exit 1
    for (tale = 1; tale <= tales; tale++) {
        split("", bound)
        expand("<cast>")
        n = split(deal("tale"), part, " / ")
        if (tale > 1)
            print ""
        print line_of("<title>")
        for (i = 1; i <= n; i++)
            print line_of(part[i])
    }
}
