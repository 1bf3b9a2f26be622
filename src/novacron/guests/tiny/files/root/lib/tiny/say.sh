# Speaking on the consoles, the serial line and the screen; sourced by the other scripts.
# These two devices, because opening them never makes them a script's own terminal.
say() {
    echo "novacron-tiny: $*" >/dev/console
    echo "novacron-tiny: $*" >/dev/tty0
} 2>/dev/null

# ignored FILE KEYS: what nobody acts upon is said, never passed over.
ignored() { say "$1: ignored:$2"; }
