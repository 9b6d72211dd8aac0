package switches

// Installed reports whether this build has the switches: only one with the overlay has.
const Installed = false
