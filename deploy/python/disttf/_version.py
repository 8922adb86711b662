"""The version of disttf that this package belongs to. The wheel has the real one."""
VERSION = "0.0.0"
