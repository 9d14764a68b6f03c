"""The runtime that programs embed: store, session handles, actors, mailbox, supervisor."""
