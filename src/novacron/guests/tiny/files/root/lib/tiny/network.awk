# network-config, version 2: for each ethernet a function of commands, and which NIC it is for.
function scalar(path, value,    part, count, id, field) {
    sub(/^network\//, "", path)
    count = split(path, part, "/")
    if (path == "version")
        version = value
    else if (part[1] != "ethernets")
        not_known(count > 1 ? part[1] "/" part[2] : path)
    else if (count > 2) {
        id = part[2]
        if (!(id in known)) {
            known[id] = 1
            ids[++ethernets] = id
        }
        field = substr(path, length("ethernets/" id "/") + 1)
        if (!ethernet(id, field, value, part[4], part[5]))
            not_known(path)
    }
}

# Says whether the field is known.
function ethernet(id, field, value, number, what) {
    if (field == "match/macaddress") mac[id] = tolower(value)
    else if (field == "match/name") name[id] = value
    else if (field == "set-name") rename[id] = "rename " quoted(value)
    else if (field == "mtu") add(id, "mtu", value)
    else if (field == "dhcp4" && yes(value)) add(id, "dhcp", "")
    else if (field ~ /^dhcp[46]$/ && no(value)) return 1
    else if (field ~ /^addresses\/[0-9]+$/) add(id, "address", value)
    else if (field ~ /^gateway[46]$/) gateway[id] = gateway[id] "\nroute default " quoted(value)
    else if (field ~ /^nameservers\/addresses\/[0-9]+$/) add(id, "nameserver", value)
    else if (field ~ /^nameservers\/search\/[0-9]+$/) add(id, "search", value)
    else if (field ~ /^routes\/[0-9]+\/(to|via|metric)$/) {
        route[id, number, what] = value
        if (number + 1 > routes[id])
            routes[id] = number + 1
    } else return 0
    return 1
}

function yes(value) { return tolower(value) ~ /^(true|yes|on)$/ }
function no(value) { return tolower(value) ~ /^(false|no|off)$/ }

function add(id, verb, value) {
    commands[id] = commands[id] "\n" verb " " quoted(value)
}

# As a pattern of shell, with nothing in it that the shell could take for more.
function pattern(text) {
    gsub(/[^A-Za-z0-9*?_.:-]/, "", text)
    return text
}

END {
    if (unknown)
        print "ignored network-config " quoted(unknown)
    if (version != "2") {
        print "unsupported " quoted(version)
        exit
    }
    for (i = 1; i <= ethernets; i++) {
        id = ids[i]
        print "ethernet_" i "() {\n" rename[id] "\nlink_up" commands[id] gateway[id]
        for (n = 0; n < routes[id]; n++)
            print "route " quoted(route[id, n, "to"]) " " quoted(route[id, n, "via"]) " " \
                quoted(route[id, n, "metric"])
        print "}"
        # An ethernet that does not say which NIC it is for has the NIC's name.
        who = (id in mac ? mac[id] : "*") "/" (id in name ? name[id] : id in mac ? "*" : id)
        split(who, half, "/")
        choices = choices pattern(half[1]) "/" pattern(half[2]) ") ethernet_" i " ;;\n"
    }
    print "configure() {\ncase $mac/$nic in\n" choices "*) nobody ;;\nesac\n}"
}
