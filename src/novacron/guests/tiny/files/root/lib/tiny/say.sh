# Speaking on the consoles; sourced by the other scripts.
say() {
    echo "novacron-tiny: $*" >/dev/console
    echo "novacron-tiny: $*" >/dev/tty1
} 2>/dev/null

# ignored FILE KEYS: what nobody acts upon is said, never passed over.
ignored() { say "$1: ignored:$2"; }
