# meta-data: who this instance is.
function scalar(path, value) {
    if (value == "")
        return
    if (path == "instance-id")
        print "instance=" quoted(value)
    else if (path == "local-hostname")
        print "name=" quoted(value)
    else {
        sub(/\/.*/, "", path)
        not_known(path)
    }
}

END {
    if (unknown)
        print "ignored meta-data " quoted(unknown)
}
