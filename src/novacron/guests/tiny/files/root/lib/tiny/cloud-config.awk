# #cloud-config: functions of commands, by when they are to be run.
function scalar(path, value,    part, empty) {
    split(path, part, "/")
    empty = value == "" || value == "~" || value == "null"
    if (empty && path !~ /\/content$/)
        return
    if (path == "hostname") hostname = value
    else if (path == "fqdn") fqdn = value
    else if (path ~ /^(bootcmd|runcmd)\/[0-9]+(\/[0-9]+)?$/)
        add_command(part[1], part[2], part[3], value)
    else if (path ~ /^write_files\/[0-9]+\/(path|content(!binary)?|encoding)$/ ||
        path ~ /^write_files\/[0-9]+\/(permissions|owner|append|defer)$/)
        add_file(part[2], part[3], value)
    else if (path ~ /^ssh_authorized_keys\/[0-9]+$/)
        keys = keys "ssh_key " quoted(value) "\n"
    else
        not_known(part[1] == "write_files" ? path : part[1])
}

# Like cloud-init: a text is a line of shell, a list is a program with its arguments.
function add_command(list, number, argument, value) {
    if (argument == "")
        line[list, number] = value
    else
        line[list, number] = line[list, number] (argument > 0 ? " " : "") quoted(value)
    if (number + 1 > lines[list])
        lines[list] = number + 1
}

function add_file(number, field, value) {
    if (field == "content!binary") {
        file[number, "encoding"] = "b64"
        field = "content"
    }
    file[number, field] = value
    if (number + 1 > files)
        files = number + 1
}

function print_commands(list,    i) {
    print list "() {\n:"
    for (i = 0; i < lines[list]; i++)
        print "line " quoted(line[list, i])
    print "}"
}

END {
    if (unknown)
        print "ignored user-data " quoted(unknown)
    print "wanted_name=" quoted(fqdn ? fqdn : hostname)
    print_commands("bootcmd")
    print_commands("runcmd")
    print "files() {\n:"
    for (i = 0; i < files; i++)
        print "write_file " quoted(file[i, "path"]) " " quoted(file[i, "content"]) " " \
            quoted(file[i, "encoding"]) " " quoted(file[i, "permissions"]) " " \
            quoted(file[i, "owner"]) " " quoted(file[i, "append"])
    print keys "}"
}
