# Follows the events of a YAML parser and calls scalar(path, value) for each value.
# The rules that come after this file define scalar(); a path is made of keys and numbers.

# As a word of shell. Not by gsub(), whose backslashes differ between versions of busybox.
function quoted(text,    at, out) {
    out = ""
    while (at = index(text, "'")) {
        out = out substr(text, 1, at - 1) "'\\''"
        text = substr(text, at + 1)
    }
    return "'" out text "'"
}

# Remembers what no rule knows, each once.
function not_known(what) {
    if (!(what in seen)) {
        seen[what] = 1
        unknown = unknown " " what
    }
}

function plain(text,    out, at, mark) {
    out = ""
    while (at = index(text, "\\")) {
        mark = substr(text, at + 1, 1)
        out = out substr(text, 1, at - 1) (mark in escapes ? escapes[mark] : mark)
        text = substr(text, at + 2)
    }
    return out text
}

function path(    i, text) {
    text = step[1]
    for (i = 2; i <= depth; i++)
        text = text "/" step[i]
    return text
}

# A value begins here: that of a key, or the next of a list.
function begin_value() {
    if (kind[depth] == "list")
        step[depth]++
}

function end_value() {
    if (kind[depth] == "map")
        awaiting_key[depth] = 1
}

function open(what) {
    begin_value()
    depth++
    kind[depth] = what
    step[depth] = what == "list" ? -1 : ""
    awaiting_key[depth] = what == "map"
}

BEGIN {
    escapes["n"] = "\n"
    escapes["t"] = "\t"
    escapes["r"] = "\r"
    escapes["b"] = "\b"
}

/^\+MAP/ { open("map") }
/^\+SEQ/ { open("list") }
/^-(MAP|SEQ)/ { depth--; end_value() }

# =VAL, then anchor and tag if any, then a mark of the style and the text.
/^=VAL/ {
    text = substr($0, 6)
    binary = ""
    while (text ~ /^[&<]/) {
        if (text ~ /^<tag:yaml.org,2002:binary>/)
            binary = "!binary"
        text = substr(text, index(text, " ") + 1)
    }
    text = plain(substr(text, 2))
    if (kind[depth] == "map" && awaiting_key[depth]) {
        step[depth] = text
        awaiting_key[depth] = 0
    } else {
        begin_value()
        scalar(path() binary, text)
        end_value()
    }
}
