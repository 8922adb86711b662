"""The version of disttf that this package belongs to: make package writes it into the wheel's copy of this file."""
VERSION = "checkout"
